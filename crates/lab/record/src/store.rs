//! Reading a run back.

use std::fmt;
use std::path::Path;

use crate::error::RecordError;
use crate::schema::{Run, Sample};

/// A run as it lies on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// What was planned and where it ran.
    pub run: Run,
    /// Every invocation that ended, in the order of the file.
    pub samples: Vec<Sample>,
    /// What was not in order and was passed over; show each to the reader.
    pub warnings: Vec<Warning>,
}

/// Something about a record that a reader must be told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning(pub String);

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses `samples.ndjson`. A last line without its line end that is not a sample was torn by a
/// crash: it becomes a warning. Any other bad line is an error, since nothing but damage makes it.
pub(crate) fn parse_samples(
    path: &Path,
    bytes: &[u8],
) -> Result<(Vec<Sample>, Option<Warning>), RecordError> {
    let mut samples = Vec::new();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let (text, ended) = match line.strip_suffix(b"\n") {
            Some(text) => (text, true),
            None => (line, false),
        };
        match serde_json::from_slice(text) {
            Ok(sample) => samples.push(sample),
            Err(_) if !ended => {
                let warning = format!(
                    "{}: line {}: torn after {} bytes, as a crash leaves it; this one sample is lost",
                    path.display(),
                    index + 1,
                    text.len()
                );
                return Ok((samples, Some(Warning(warning))));
            }
            Err(error) => {
                return Err(RecordError::Malformed {
                    path: path.to_path_buf(),
                    line: index + 1,
                    reason: format!("not a sample: {error}"),
                });
            }
        }
    }
    Ok((samples, None))
}

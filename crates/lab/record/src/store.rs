//! What reading a run gives, and the reading of its samples.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::error::RecordError;
use crate::latencies::LatencyLog;
use crate::profile::Profile;
use crate::schema::{Run, Sample};

/// A run as it lies on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// What was planned and where it ran.
    pub run: Run,
    /// Every invocation that ended, in the order of the file.
    pub samples: Vec<Sample>,
    /// The latency logs that samples name, by the name of their files.
    pub latencies: BTreeMap<String, LatencyLog>,
    /// Where cases spend their processor time, in the order of the plan.
    pub profiles: Vec<Profile>,
    /// What was not in order and was passed over; show each to the reader.
    pub warnings: Vec<Warning>,
    /// Why the figures of this run must not be used any more, when they were withdrawn after it.
    pub withdrawn: Option<Withdrawal>,
}

/// The text of a `WITHDRAWN.md` beside a record. The record stays, because it is what was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Withdrawal {
    /// Its heading without the `#`: what is withdrawn.
    pub what: String,
    /// The rest: the reasons, as Markdown.
    pub why: String,
}

impl Withdrawal {
    /// Reads the text; a file without a heading or without reasons withdraws all the same.
    pub(crate) fn from_markdown(text: &str) -> Withdrawal {
        let (first, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
        let (what, why) = match first.strip_prefix("# ") {
            Some(heading) => (heading, rest),
            None => ("Withdrawn", text),
        };
        Withdrawal {
            what: what.trim().to_owned(),
            why: why.trim().to_owned(),
        }
    }
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
            // Only the last line can lack its line end, and a writer that crashed can have left
            // only that line short. A damaged line before it is an error, because passing over it
            // would silently leave a sample out of every figure.
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

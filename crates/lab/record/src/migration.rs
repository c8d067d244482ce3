//! From the bytes of a `run.json` of any version that was ever released to today's [`Run`].
//!
//! There is one version so far. A new one adds a branch to [`run_from_json`] that turns the JSON
//! of version N into that of N + 1, and a fixture `tests/fixtures/run-vN`.

use std::path::Path;

use serde_json::Value;

use crate::error::RecordError;
use crate::schema::{Run, SCHEMA_VERSION};

/// The word that marks a `run.json`.
pub(crate) const MAGIC: &str = "dyno-run";

/// Reads a `run.json`. Errors name `path` and the line.
pub(crate) fn run_from_json(path: &Path, text: &str) -> Result<Run, RecordError> {
    let value: Value = serde_json::from_str(text).map_err(|e| malformed(path, &e))?;
    check_version(path, &value)?;
    // The current version is parsed from the text, which keeps the line in the error.
    serde_json::from_str(text).map_err(|e| malformed(path, &e))
}

fn malformed(path: &Path, error: &serde_json::Error) -> RecordError {
    RecordError::Malformed {
        path: path.to_path_buf(),
        line: error.line(),
        reason: format!("not a run: {error}"),
    }
}

fn check_version(path: &Path, value: &Value) -> Result<(), RecordError> {
    let magic = value.get("magic").unwrap_or(&Value::Null);
    if magic != MAGIC {
        return Err(RecordError::Magic {
            path: path.to_path_buf(),
            expected: MAGIC,
            found: magic.to_string(),
        });
    }
    let stated = value.get("schema_version").unwrap_or(&Value::Null);
    match stated.as_u64() {
        Some(found) if found == u64::from(SCHEMA_VERSION) => Ok(()),
        Some(found) if found > u64::from(SCHEMA_VERSION) => Err(RecordError::Newer {
            path: path.to_path_buf(),
            format: MAGIC,
            found,
            newest: SCHEMA_VERSION,
        }),
        _ => Err(RecordError::Malformed {
            path: path.to_path_buf(),
            line: 1,
            reason: format!("schema_version {stated} was never released"),
        }),
    }
}

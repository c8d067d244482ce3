//! The door between the runner and a child: one JSON object in, one JSON object out.
//!
//! The runner writes a [`Request`] to the child's stdin and closes it. The child prints a
//! [`Reply`] as its last line of stdout and exits 0, or says on stderr why not and exits with
//! another code. Whatever it prints before that line is for people. Lines on stderr that begin with
//! [`PROGRESS`] are shown while it runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_record::Answer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a line of stderr begins that says how far a child is.
pub const PROGRESS: &str = "progress: ";

/// What a child is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// For example `ingest-load`; `version` asks for a [`VersionReply`] instead.
    pub workload: String,
    /// The case's parameters, everything substituted.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
    /// A fresh and empty directory of this invocation alone; for data it is where to put it.
    #[serde(default)]
    pub scratch: PathBuf,
    /// What the runner wants of the invocation; a child may do less when nothing is timed.
    #[serde(default)]
    pub phase: Phase,
}

/// Why a child is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// To make data that cases read; nothing is timed.
    Prepare,
    /// To learn its answer before anything is timed.
    Verify,
    /// To be timed; the answer is asked for again.
    #[default]
    Measure,
}

/// The one JSON object that a child prints as its last line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What the work came to, for comparison with other systems; no sample counts without it.
    pub answer: Option<Answer>,
    /// Metric name to value, in the case's units.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
    /// Texts that the report shows beside the figures, by name.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
    /// Of a job, inner repetitions of the ranking metric; of a service, operations a second in even
    /// stretches of the measured time.
    #[serde(default)]
    pub windows: Vec<f64>,
    /// Seconds that each window covers, when they are stretches of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// A latency histogram log that it left in its scratch directory.
    #[serde(default)]
    pub histogram: Option<PathBuf>,
}

/// The answer to the workload `version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionReply {
    /// The version as the system itself states it, not as it was declared.
    pub version: String,
    /// Changes when data made by earlier programs must be made anew; part of the data's hash.
    #[serde(default)]
    pub data_version: String,
}

impl Request {
    /// Asks a child which version it is.
    pub fn version() -> Request {
        Request {
            workload: "version".to_string(),
            params: BTreeMap::new(),
            scratch: PathBuf::new(),
            phase: Phase::Verify,
        }
    }
}

/// Reads the last non-empty line of a child's stdout.
pub fn parse_last_line<T: serde::de::DeserializeOwned>(stdout: &str) -> Result<T, String> {
    let line = stdout
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .ok_or_else(|| "it printed no answer".to_string())?;
    serde_json::from_str(line).map_err(|e| {
        let shown: String = line.chars().take(200).collect();
        format!("its last line is not an answer ({e}): {shown}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts() {
        let reply: Reply = parse_last_line(
            "loading...\n{\"answer\":{\"count\":3,\"checksum\":\"ab\"},\"metrics\":{\"time\":1.5}}\n\n",
        )
        .expect("a reply");
        assert_eq!(reply.answer.map(|a| a.count), Some(3));
        assert_eq!(reply.metrics["time"], 1.5);
    }

    #[test]
    fn noise_is_refused_with_what_was_seen() {
        let e = parse_last_line::<Reply>("Segmentation fault").expect_err("not JSON");
        assert!(e.contains("Segmentation fault"), "{e}");
        assert!(
            parse_last_line::<Reply>("\n\n")
                .expect_err("empty")
                .contains("no answer")
        );
    }
}

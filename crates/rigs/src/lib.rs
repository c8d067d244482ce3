//! Bolts each engine to the lab: one file per engine turns it into workloads of suites.
//!
//! A rig runs inside a child process of the runner. It reads the case's parameters, runs the
//! engine as its public command would, and answers through `dyno_suite::protocol`.

mod params;

use dyno_suite::protocol::{Request, VersionReply};

pub use params::Params;

/// Changes when data that an earlier program prepared must be made anew.
pub const DATA_VERSION: &str = "1";

/// Why a workload could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// The suite names a workload that no rig has.
    #[error("no workload is called `{0}`; there is: version")]
    Unknown(String),
    /// The suite hands a parameter that the workload cannot use.
    #[error("parameter `{name}`: {reason}")]
    Param {
        /// The parameter.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The engine failed; its own words.
    #[error("{0}")]
    Engine(String),
    /// The reply holds a number that JSON has not.
    #[error("the reply cannot be written: {0}")]
    Reply(#[from] serde_json::Error),
}

/// Runs the workload of a request and answers with the line to print.
///
/// # Errors
/// See [`RigError`]; the caller prints it on stderr and exits with another code than 0.
pub fn answer(request: &Request) -> Result<String, RigError> {
    match request.workload.as_str() {
        "version" => Ok(serde_json::to_string(&VersionReply {
            version: env!("CARGO_PKG_VERSION").to_string(),
            data_version: DATA_VERSION.to_string(),
        })?),
        other => Err(RigError::Unknown(other.to_string())),
    }
}

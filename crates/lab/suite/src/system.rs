//! A system that takes part: our own program, or a peer.

use std::ffi::OsString;
use std::path::PathBuf;

/// How to start a system as a child, and which version it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// `dyno` or the peer's name.
    pub name: String,
    /// The executable that is started for each invocation.
    pub program: PathBuf,
    /// The arguments that make the executable speak the protocol.
    pub args: Vec<OsString>,
    /// The version that the system states or, of a peer, must state.
    pub version: String,
    /// Changes when data made before must be made anew; see
    /// [`crate::protocol::VersionReply::data_version`].
    pub data_version: String,
    /// How a peer promises less than `dyno`, if it does.
    pub promises_less: Option<String>,
    /// Why it takes no part, when it does not, with how to install it.
    pub missing: Option<String>,
}

/// The name of our own system in records.
pub const DYNO: &str = "dyno";

//! A system that takes part: our own program, or a peer.

use std::ffi::OsString;
use std::path::PathBuf;

/// How to start a system as a child, and which version it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// `dyno` or the peer's name.
    pub name: String,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// As it reports it.
    pub version: String,
    /// See [`crate::protocol::VersionReply::data_version`].
    pub data_version: String,
    /// Why it takes no part, when it does not, with how to install it.
    pub missing: Option<String>,
}

/// The name of our own system in records.
pub const DYNO: &str = "dyno";

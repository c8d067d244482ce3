//! One invocation of one child, and what came of it; the real one is [`crate::ChildExecutor`].

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use dyno_record::Usage;

use crate::Error;
use crate::protocol::Request;
use crate::stop::Stop;

/// Everything needed to start one child.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// The system it belongs to, for messages.
    pub system: String,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// What it reads from stdin.
    pub request: Request,
    /// It is killed with all its children when this is over.
    pub time_limit: Duration,
}

/// How a child ended and what it left.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Why it ended.
    pub exit: Exit,
    /// Start to exit.
    pub wall_s: f64,
    /// Everything it printed.
    pub stdout: String,
    /// Everything it complained about.
    pub stderr: String,
    /// What it used.
    pub usage: Usage,
}

/// Why a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal that the runner did not send.
    Signal(i32),
    /// Killed at its time limit.
    TimedOut,
    /// Killed because the user asked to stop.
    Stopped,
}

/// Runs children: for real, or in tests from a script.
pub trait Executor {
    /// Starts the child, hands it its request and waits for its end, its time limit, or `stop`.
    /// A child that fails is an [`Ended`]; an error means that it could not even be started.
    fn execute(&mut self, invocation: &Invocation, stop: &Stop) -> Result<Ended, Error>;
}

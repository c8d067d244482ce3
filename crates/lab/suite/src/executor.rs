//! One invocation of one child, and what came of it; the real one is [`crate::ChildExecutor`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyno_record::Usage;

use crate::Error;
use crate::beside::{LoadCommand, RunningLoad};
use crate::protocol::Request;
use crate::stop::Stop;

/// Everything needed to start one child.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// The system it belongs to, for messages.
    pub system: String,
    /// The executable, ours or that of a peer.
    pub program: PathBuf,
    /// The arguments that make the executable speak the protocol.
    pub args: Vec<OsString>,
    /// What it reads from stdin.
    pub request: Request,
    /// It is killed with all its children when this is over.
    pub time_limit: Duration,
}

impl Invocation {
    /// Has the child, and all that it starts, run on these logical processors alone.
    pub(crate) fn keep_to(&mut self, cores: &[u32]) {
        // taskset replaces itself by the program, so that the process that is watched and killed is
        // the child and not one around it.
        let list: Vec<String> = cores.iter().map(u32::to_string).collect();
        self.start_by("taskset", ["-c".into(), list.join(",").into()]);
    }

    /// Has another program start the child; `args` are the arguments before it.
    pub(crate) fn start_by(&mut self, starter: &str, args: impl IntoIterator<Item = OsString>) {
        let program = std::mem::replace(&mut self.program, PathBuf::from(starter));
        let before = args.into_iter().chain([program.into_os_string()]);
        self.args.splice(0..0, before);
    }
}

/// How a child ended and what it left.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Whether the child ended by itself or was killed, and with what.
    pub exit: Exit,
    /// Seconds from just before the start of the child to its end.
    pub wall_s: f64,
    /// Standard output, or the end of one that was very long; the reply is its last line.
    pub stdout: String,
    /// Standard error, or the end of one that was very long; shown when the child failed.
    pub stderr: String,
    /// Processor time, memory and I/O of the child and its descendants.
    pub usage: Usage,
}

/// The end of a child, told apart by who decided it.
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

    /// Starts a load that runs in `dir` until it is ended or dropped.
    ///
    /// # Errors
    /// [`Error::Beside`] when it could not be started.
    fn begin_load(&mut self, load: &LoadCommand, dir: &Path)
    -> Result<Box<dyn RunningLoad>, Error>;
}

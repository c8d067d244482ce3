//! The results of commands as exit codes that a script can act on.

use std::process::ExitCode;

use crate::terminal;

/// The answers of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// It worked, and its answer is negative: a regression, a failed check, a wrong answer.
    No,
    /// It was asked wrongly, or something broke.
    Failure,
    /// There are too few samples to say.
    NotEnoughEvidence,
    /// This signal stopped it before it was done; what it had finished is kept.
    Stopped(u8),
}

impl Exit {
    /// Prints an error and returns its exit code.
    pub fn from_error(error: &anyhow::Error) -> Exit {
        // The reader of a pipe has seen enough, which is not a failure of ours.
        if terminal::is_broken_pipe(error) {
            return Exit::Done;
        }
        eprintln!("dyno: {}", terminal::explain(error));
        Exit::Failure
    }

    /// The number; a signal's is 128 and more, as shells have it.
    pub fn code(self) -> i32 {
        match self {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::Failure => 2,
            Exit::NotEnoughEvidence => 3,
            Exit::Stopped(signal) => 128 + i32::from(signal & 0x7f),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code() as u8)
    }
}

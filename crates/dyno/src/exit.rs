//! What a command came to, as an exit code that a script can act on.

use std::process::ExitCode;

/// The four answers of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// It worked, and the answer is no: a regression, a failed check, a wrong answer.
    No,
    /// It was asked wrongly, or something broke.
    Failure,
    /// There are too few samples to say.
    NotEnoughEvidence,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::Failure => 2,
            Exit::NotEnoughEvidence => 3,
        })
    }
}

//! Why two commands could not be compared.

/// An error of a comparison of commands.
#[derive(Debug, thiserror::Error)]
pub enum AbError {
    /// A command did not end with exit status 0.
    #[error("`{command}` {how}{stderr_end}")]
    Command {
        /// The command, as it was given to the shell.
        command: String,
        /// How it ended: its exit status, its signal, or the time limit.
        how: String,
        /// A line break and the end of what it wrote to standard error, or nothing.
        stderr_end: String,
    },
    /// The lab could not run a command.
    #[error(transparent)]
    Machine(#[from] dyno_machine::MachineError),
    /// The command wrote more than can be given to the check.
    #[error(
        "`{command}` wrote more than {limit_bytes} bytes, which is too much for --verify; let it \
         write to a file and verify that"
    )]
    Output {
        /// The command whose output was cut off.
        command: String,
        /// The most that is kept, in bytes.
        limit_bytes: usize,
    },
    /// The user stopped it before there were enough blocks for a verdict.
    #[error("stopped before there was anything to judge")]
    Stopped,
}

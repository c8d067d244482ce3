//! What can go wrong while looking at a machine or at a child.

use std::io;

/// Why the machine could not be read, measured or made to run a child.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The program could not be started: install it or mend its path.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program as it was asked for.
        program: String,
        /// The reason that the operating system gave.
        source: io::Error,
    },
    /// A system call on a running child failed; the child was killed.
    #[error("cannot {action} process {pid}: {source}")]
    Process {
        /// The verb of the message, such as `wait for`.
        action: &'static str,
        /// The process id of the child.
        pid: u32,
        /// The reason that the operating system gave.
        source: io::Error,
    },
    /// The child is still there long after SIGKILL: it waits in the kernel, often for a disk.
    #[error("process {pid} is still there {waited_s} s after it was killed")]
    Unkillable {
        /// The process id of the child.
        pid: u32,
        /// Seconds between the kill and giving up.
        waited_s: u64,
    },
    /// A load that should run beside a measurement could not go on.
    #[error("the load on the {load} failed: {source}")]
    Load {
        /// The name of the load on the command line.
        load: &'static str,
        /// The reason that the operating system gave.
        source: io::Error,
    },
    /// A limit could not be measured.
    #[error("cannot measure {limit}: {reason}")]
    Limit {
        /// The stable name of the limit, such as `copy-1`.
        limit: &'static str,
        /// The reason in words, as reports show it.
        reason: String,
    },
}

impl MachineError {
    pub(crate) fn limit(limit: &'static str, reason: impl ToString) -> Self {
        Self::Limit {
            limit,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn process(action: &'static str, pid: u32) -> Self {
        Self::Process {
            action,
            pid,
            source: io::Error::last_os_error(),
        }
    }
}

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
        /// The system's reason.
        source: io::Error,
    },
    /// A system call on a running child failed; the child was killed.
    #[error("cannot {action} process {pid}: {source}")]
    Process {
        /// What was tried.
        action: &'static str,
        /// Its process id.
        pid: u32,
        /// The system's reason.
        source: io::Error,
    },
    /// The child is still there long after SIGKILL: it waits in the kernel, often for a disk.
    #[error("process {pid} is still there {waited_s} s after it was killed")]
    Unkillable {
        /// Its process id.
        pid: u32,
        /// Seconds waited.
        waited_s: u64,
    },
    /// A limit could not be measured.
    #[error("cannot measure {limit}: {reason}")]
    Limit {
        /// Name of the limit.
        limit: &'static str,
        /// Why.
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

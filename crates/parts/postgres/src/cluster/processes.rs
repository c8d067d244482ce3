//! Lists the processes of a cluster and kills them.

use std::time::{Duration, Instant};

use super::Cluster;
use crate::error::PgError;
use crate::os::of_directory;

/// How long the kernel may take to end killed processes; one inside a disk wait takes a while.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);
pub(super) const POLL: Duration = Duration::from_millis(5);

/// Process ids of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pids {
    /// The parent of all others; `None` if it has ended.
    pub postmaster: Option<u32>,
    /// Its children: backends and helpers.
    pub children: Vec<u32>,
}

impl Pids {
    /// Whether no process of the cluster is alive.
    pub fn is_empty(&self) -> bool {
        self.postmaster.is_none() && self.children.is_empty()
    }
}

impl Cluster {
    /// All living processes of this cluster, whichever process started them.
    pub fn pids(&self) -> Pids {
        let data = self.home.data();
        let postmaster = super::postmaster::read(&data).map(|found| found.process.pid);
        let processes = of_directory(&data).into_iter().map(|process| process.pid);
        Pids {
            postmaster,
            children: processes.filter(|pid| Some(*pid) != postmaster).collect(),
        }
    }

    /// Kills (`SIGKILL`) one process of this cluster, such as a backend. Returns `false` if `pid`
    /// does not belong to it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn kill_one(&self, pid: u32) -> Result<bool, PgError> {
        let processes = of_directory(&self.home.data());
        let Some(process) = processes.iter().find(|process| process.pid == pid) else {
            return Ok(false);
        };
        self.signal(process, libc::SIGKILL)?;
        Ok(true)
    }

    /// Kills (`SIGKILL`) every process of this cluster, and returns when all have ended. Killing
    /// only the postmaster would let its children finish what they are doing.
    ///
    /// # Errors
    /// When the kernel refuses, or processes remain after half a minute.
    pub fn kill_all(&mut self) -> Result<(), PgError> {
        let deadline = Instant::now() + KILL_TIMEOUT;
        loop {
            let processes = of_directory(&self.home.data());
            if processes.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                return Err(
                    self.stop_error(format!("{} processes survive a kill", processes.len()))
                );
            }
            // A postmaster may start another child before the signal reaches it, so the list is
            // made anew until it is empty.
            for process in &processes {
                self.signal(process, libc::SIGKILL)?;
            }
            std::thread::sleep(POLL);
        }
        self.reap()
    }

    pub(super) fn signal(&self, process: &crate::os::Process, signal: i32) -> Result<(), PgError> {
        let refused =
            |error| self.stop_error(format!("cannot signal process {}: {error}", process.pid));
        process.signal(signal).map_err(refused)
    }

    pub(super) fn stop_error(&self, reason: String) -> PgError {
        PgError::Stop {
            dir: self.home.dir.clone(),
            reason,
        }
    }
}

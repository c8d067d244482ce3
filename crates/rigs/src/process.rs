//! Servers and clients as children that do not outlive the rig. This file holds `unsafe` code: a
//! call of libc that sends a signal.

use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to listen: a JVM on a busy machine.
const START: Duration = Duration::from_secs(120);
/// The time between two looks at whether it does.
const LOOK: Duration = Duration::from_millis(20);

/// How long a server may take to end when it is asked to, before it is killed.
const END: Duration = Duration::from_secs(10);

/// Why a server or a client did not run.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started, or ended when it should not.
    #[error("{program}: {reason}")]
    Program {
        /// What the program is.
        program: String,
        /// How it ended, and the last that it said.
        reason: String,
    },
    /// A file, a socket or a port was refused.
    #[error("{what}: {source}")]
    Io {
        /// The file, or what was wanted of the system.
        what: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ProcessError {
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ProcessError {
        let what = what.into();
        move |source| ProcessError::Io { what, source }
    }

    pub fn program(program: &str, reason: impl Into<String>) -> ProcessError {
        ProcessError::Program {
            program: program.to_owned(),
            reason: reason.into(),
        }
    }
}

/// A port of loopback that nothing listens on.
pub(crate) fn free_port() -> Result<u16, ProcessError> {
    dyno_ports::free().map_err(ProcessError::io("a port of loopback"))
}

/// The file of this program, which is also the program of our servers.
pub(crate) fn this_program() -> Result<PathBuf, ProcessError> {
    std::env::current_exe().map_err(ProcessError::io("this program"))
}

/// How a server is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By SIGTERM, for a server that has files outside the scratch directory to remove.
    Asked,
    /// By SIGKILL, for one whose files all go with the scratch directory.
    Killed,
}

/// A server process. Dropping it ends the process, and the kernel does when the rig is killed.
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    ending: Ending,
    log: PathBuf,
}

impl Process {
    /// Starts a server whose output goes into `log`, and returns when it listens on `port` of
    /// loopback.
    pub fn start(
        name: &'static str,
        mut command: Command,
        log: PathBuf,
        port: u16,
        ending: Ending,
    ) -> Result<Process, ProcessError> {
        let failed = || ProcessError::io(log.display().to_string());
        let file = File::create(&log).map_err(failed())?;
        let again = file.try_clone().map_err(failed())?;
        command.stdin(Stdio::null()).stdout(file).stderr(again);
        let signal = match ending {
            Ending::Asked => {
                // The lab ends a run that takes too long with SIGKILL to the rig's process group.
                // A group of its own spares the server, which then gets SIGTERM as its parent is
                // gone.
                command.process_group(0);
                libc::SIGTERM
            }
            Ending::Killed => libc::SIGKILL,
        };
        let mut process = Process {
            name,
            child: guarded(name, command, signal)?,
            ending,
            log,
        };
        process.wait_for(port)?;
        Ok(process)
    }

    /// The process id, for `/proc`.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_for(&mut self, port: u16) -> Result<(), ProcessError> {
        let until = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                let reason = format!("it ended with {status}: {}", last_line(&self.log));
                return Err(ProcessError::program(self.name, reason));
            }
            if Instant::now() > until {
                let reason = format!("it does not listen on port {port} after {START:?}");
                return Err(ProcessError::program(self.name, reason));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ending == Ending::Asked && matches!(self.child.try_wait(), Ok(None)) {
            // SAFETY: two numbers are passed. The child has not been waited for, so the kernel
            // cannot have given its id to another process.
            unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
            let until = Instant::now() + END;
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
                thread::sleep(LOOK);
            }
        }
        // The errors are ignored, because the process may have ended by itself. Its data are
        // removed after it, so nothing has to be flushed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a child that the kernel kills when this process ends, even by a signal.
pub(crate) fn spawn(name: &str, command: Command) -> Result<Child, ProcessError> {
    guarded(name, command, libc::SIGKILL)
}

fn guarded(name: &str, command: Command, signal: libc::c_int) -> Result<Child, ProcessError> {
    dyno_postgres::spawn_guarded(command, signal)
        .map_err(|error| ProcessError::program(name, format!("it could not be started: {error}")))
}

/// The last line of a log that says something; a stack trace of Java ends with its frames, so those
/// are passed over.
fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let frame = |line: &&str| line.starts_with("\tat ") || line.trim().is_empty();
    let last = text.lines().rev().find(|line| !frame(line));
    last.unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_is_told_with_its_last_words_and_one_that_is_dropped_is_gone() {
        let folder = tempfile::tempdir().expect("a directory");
        let log = folder.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", "echo no room; printf '\\tat java.Main\\n'; exit 3"]);
        let port = dyno_ports::free().expect("a port");
        let failed = Process::start("a shell", command, log.clone(), port, Ending::Killed).err();
        let said = failed.expect("it ends").to_string();
        assert!(said.contains("exit status: 3: no room"), "{said}");

        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("a port");
        let mut command = Command::new("sleep");
        command.arg("60");
        let process = Process::start("sleep", command, log, port, Ending::Asked).expect("ours");
        let own = PathBuf::from(format!("/proc/{}", process.pid()));
        assert!(own.exists());
        drop(process);
        assert!(!own.exists());
        drop(listener);
    }
}

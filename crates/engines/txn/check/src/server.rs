//! A server in a process of its own, which can be killed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dyno_txn_api::Database;

/// Makes the command that starts a server on a directory. Its output must name its address as
/// `listening at HOST:PORT`.
pub type Start<'a> = dyn Fn(&Path) -> Command + Sync + 'a;
/// Connects a client to `HOST:PORT`. The flag says whether it may move to shared memory.
pub type Connect<'a> = dyn Fn(&str, bool) -> dyno_txn_api::Result<Box<dyn Database>> + Sync + 'a;

/// How long a started server may stay silent until it listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that did not start, or that ended by itself.
#[derive(Debug, thiserror::Error)]
#[error("the server {what}; what it said is in {log}")]
pub struct ServerError {
    /// What the server did, as the end of a sentence.
    pub what: String,
    /// The file with its standard error.
    pub log: PathBuf,
}

/// A server that accepts connections. Dropping it kills it.
pub(crate) struct Server {
    process: Process,
    address: String,
    log: PathBuf,
}

/// A child process that does not outlive its owner.
struct Process(Child);

impl Process {
    fn kill(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }

    /// Kills a process that is running. What is wrong is told as the end of a sentence.
    fn kill_running(&mut self) -> Result<(), String> {
        // A server that crashed by itself must not count as one that was killed, or the crash would
        // go unnoticed.
        match self.0.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => return Err(format!("ended by itself with {status}")),
            Err(error) => return Err(format!("cannot be looked at: {error}")),
        }
        self.kill()
            .map_err(|error| format!("cannot be killed: {error}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that has ended cannot be killed, and need not be.
        let _ = self.kill();
    }
}

impl Server {
    /// Starts a server and waits until it listens.
    pub fn start(start: &Start<'_>, folder: &Path) -> Result<Server, ServerError> {
        let (mut process, log) = spawn(start, folder)?;
        let wrong = |what: String| ServerError {
            what,
            log: log.clone(),
        };
        let Some(output) = process.0.stdout.take() else {
            return Err(wrong("has no standard output".to_owned()));
        };
        let (sender, receiver) = mpsc::channel();
        // A thread reads the output, because a pipe has no timeout and the server may hang before
        // it prints a line. It ends with the output, which ends with the server.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Once the address is known there is no receiver. The thread still drains the pipe,
                // so that the server does not block on a full one.
                let _ = sender.send(line);
            }
        });
        loop {
            let line = receiver
                .recv_timeout(PATIENCE)
                .map_err(|_| wrong(format!("did not listen within {PATIENCE:?}, or ended")))?;
            if let Some((_, address)) = line.split_once("listening at ") {
                let address = address.trim().to_owned();
                return Ok(Server {
                    process,
                    address,
                    log,
                });
            }
        }
    }

    /// Starts a server, and kills it so soon that it may not have recovered. It is an error if it
    /// has ended by itself.
    pub fn kill_starting(
        start: &Start<'_>,
        folder: &Path,
        after: Duration,
    ) -> Result<(), ServerError> {
        let (mut process, log) = spawn(start, folder)?;
        thread::sleep(after);
        process
            .kill_running()
            .map_err(|what| ServerError { what, log })
    }

    /// The id of the server's process.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// The address that it printed, as `HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Kills the server with SIGKILL, and waits for its end. It is an error if it has ended by
    /// itself.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        self.process.kill_running().map_err(|what| ServerError {
            what,
            log: self.log.clone(),
        })
    }
}

/// The server's directory within the folder of a check.
pub(crate) fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn spawn(start: &Start<'_>, folder: &Path) -> Result<(Process, PathBuf), ServerError> {
    let log = folder.join("server.log");
    let wrong = |what: String| ServerError {
        what,
        log: log.clone(),
    };
    // The file is appended to, so the output of all rounds of a check stays.
    let errors: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log)
        .map_err(|error| wrong(format!("cannot write what it says: {error}")))?;
    let mut command = start(&data(folder));
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(|error| wrong(format!("cannot be started: {error}")))?;
    Ok((Process(child), log))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_while_it_starts_was_not_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let start = |_: &Path| {
            let mut command = Command::new("sh");
            command.args(["-c", "exit 3"]);
            command
        };
        let error = Server::kill_starting(&start, folder.path(), Duration::from_secs(1))
            .expect_err("it has ended by itself");
        assert_eq!(error.what, "ended by itself with exit status: 3");
    }
}

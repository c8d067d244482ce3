//! A server as a process.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dyno_txn_api::Database;

/// How a server is started: on this directory, with `listening at HOST:PORT` as its first line.
pub type Start<'a> = dyn Fn(&Path) -> Command + Sync + 'a;
/// How a client connects to `HOST:PORT`, and whether it may move to shared memory.
pub type Connect<'a> = dyn Fn(&str, bool) -> dyno_txn_api::Result<Box<dyn Database>> + Sync + 'a;

/// How long a started server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
#[error("the server {what}; what it said is in {log}")]
pub struct ServerError {
    /// What it did.
    pub what: String,
    /// What it said.
    pub log: PathBuf,
}

/// A server that listens. Dropping it kills it.
pub(crate) struct Server {
    process: Process,
    address: String,
    log: PathBuf,
}

/// A child that does not outlive its owner.
struct Process(Child);

impl Process {
    fn kill(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that has ended cannot be killed, and needs not be.
        let _ = self.kill();
    }
}

impl Server {
    /// Starts one and waits until it listens.
    pub fn start(start: &Start<'_>, folder: &Path) -> Result<Server, ServerError> {
        let (mut process, log) = spawn(start, folder)?;
        let wrong = |what: String| ServerError {
            what,
            log: log.clone(),
        };
        let Some(output) = process.0.stdout.take() else {
            return Err(wrong("has no standard output".to_owned()));
        };
        let (said, hear) = mpsc::channel();
        // The thread ends with the server's output, which ends with the server.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // What the server prints after its address is not read.
                let _ = said.send(line);
            }
        });
        loop {
            let line = hear
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

    /// Starts one and kills it so soon that it may not have recovered.
    pub fn kill_starting(
        start: &Start<'_>,
        folder: &Path,
        after: Duration,
    ) -> Result<(), ServerError> {
        let (mut process, log) = spawn(start, folder)?;
        thread::sleep(after);
        process.kill().map_err(|error| ServerError {
            what: format!("cannot be killed: {error}"),
            log,
        })
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Kills it as kill -9 does. One that has ended by itself is an error.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        let wrong = |what: String| ServerError {
            what,
            log: self.log.clone(),
        };
        match self.process.0.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => return Err(wrong(format!("ended by itself with {status}"))),
            Err(error) => return Err(wrong(format!("cannot be looked at: {error}"))),
        }
        self.process
            .kill()
            .map_err(|error| wrong(format!("cannot be killed: {error}")))
    }
}

/// Its directory below the folder of a check.
pub(crate) fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn spawn(start: &Start<'_>, folder: &Path) -> Result<(Process, PathBuf), ServerError> {
    let log = folder.join("server.log");
    let wrong = |what: String| ServerError {
        what,
        log: log.clone(),
    };
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

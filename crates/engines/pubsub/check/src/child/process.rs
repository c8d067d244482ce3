//! A child process as the checker sees it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::Job;
use crate::nemesis;
use crate::run::Recorder;

const POLL: Duration = Duration::from_millis(5);
/// How many of the last bytes of its standard error are shown if it ends by itself.
const COMPLAINT_BYTES: u64 = 600;

/// Why a child could not be started or ended.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {name}: {source}")]
pub struct SpawnError {
    action: &'static str,
    name: String,
    source: io::Error,
}

/// How a child process has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It ended after it was asked to, with success.
    Asked,
    /// It ended by itself, or did not end when asked, which fails the run. The text has its status
    /// and its last words.
    ByItself(String),
}

/// A running child. It is killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    reading: Option<JoinHandle<()>>,
}

impl Process {
    /// Runs `program` (its path and first arguments) with `job`. Its events go to `recorder`, and
    /// its standard error to `name`.log in `dir`.
    pub fn start(
        program: &[String],
        job: &Job,
        name: &str,
        dir: &Path,
        recorder: &Arc<Recorder>,
    ) -> Result<Self, SpawnError> {
        let failed = |source| SpawnError {
            action: "start",
            name: name.to_owned(),
            source,
        };
        let (path, arguments) = program.split_first().ok_or_else(|| {
            failed(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no program is named",
            ))
        })?;
        let log = dir.join(format!("{name}.log"));
        let mut child = Command::new(path)
            .args(arguments)
            .arg(serde_json::to_string(job).map_err(|e| failed(e.into()))?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let out = child.stdout.take();
        let (recorder, named) = (recorder.clone(), name.to_owned());
        let reading = thread::spawn(move || {
            if let Some(out) = out {
                record(BufReader::with_capacity(64 << 10, out), &recorder, &named);
            }
        });
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
            reading: Some(reading),
        })
    }

    /// The name that its log and reports have.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process, for signals and samples.
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// Returns how it ended if it has ended by itself.
    pub fn complaint(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(self.last_words(status)),
            Err(error) => Some(format!("{}: {error}", self.name)),
        }
    }

    /// Kills it with SIGKILL, and waits until everything that it wrote was read.
    pub fn kill(mut self) -> Result<(), SpawnError> {
        self.end().map_err(|source| SpawnError {
            action: "kill",
            name: self.name.clone(),
            source,
        })
    }

    /// Asks it to stop, by closing its standard input.
    pub fn ask(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for a child that was asked to stop, and kills it after `timeout`.
    pub fn wait(mut self, timeout: Duration) -> Result<Ended, SpawnError> {
        let failed = |name: &str, source| SpawnError {
            action: "wait for",
            name: name.to_owned(),
            source,
        };
        let deadline = Instant::now() + timeout;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => {
                    self.end().map_err(|e| failed(&self.name, e))?;
                    return Ok(Ended::Asked);
                }
                Ok(Some(status)) => {
                    let words = self.last_words(status);
                    self.end().map_err(|e| failed(&self.name, e))?;
                    return Ok(Ended::ByItself(words));
                }
                Ok(None) if Instant::now() > deadline => {
                    self.end().map_err(|e| failed(&self.name, e))?;
                    let words = format!("{} did not stop within {timeout:?}", self.name);
                    return Ok(Ended::ByItself(words));
                }
                Ok(None) => thread::sleep(POLL),
                Err(error) => return Err(failed(&self.name, error)),
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
            // On some kernels a process that is stopped does not die until it is resumed.
            nemesis::resume(&self.child)?;
            self.child.wait()?;
        }
        if let Some(reading) = self.reading.take() {
            // A panic of the thread was printed, and the checker finds the events that are missing.
            let _ = reading.join();
        }
        Ok(())
    }

    fn last_words(&self, status: ExitStatus) -> String {
        let words = tail(&self.log).unwrap_or_default();
        format!("{} ended by itself ({status}): {}", self.name, words.trim())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A caller that wants to know how it ended has waited for it.
        let _ = self.end();
    }
}

/// Records all whole lines. A process that is killed may leave half a line, which reports nothing.
fn record(mut out: impl BufRead, recorder: &Recorder, name: &str) {
    let mut line = String::new();
    loop {
        line.clear();
        match out.read_line(&mut line) {
            Ok(0) => return,
            Ok(_) if !line.ends_with('\n') => return,
            Ok(_) => match serde_json::from_str(&line) {
                Ok(event) => recorder.keep(event),
                Err(error) => recorder.trouble(format!("{name} wrote {line:?}: {error}")),
            },
            Err(error) => {
                recorder.trouble(format!("cannot read what {name} writes: {error}"));
                return;
            }
        }
    }
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(COMPLAINT_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

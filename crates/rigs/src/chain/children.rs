//! The two commands of a chain as processes, which may be killed and started again.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::ChainParams;
use crate::RigError;
use crate::process::this_program;

/// The topic's name, which is also the name of its producer.
pub(super) const TOPIC: &str = "chain";
const PRODUCER: &str = "archive";
/// How often a command that failed is started again. The first attempt after a kill may find the
/// place of the killed process still taken.
const RESTARTS_MOST: u32 = 20;

/// A process that is killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // An error means that the process has ended already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn failed(what: &'static str, reason: impl std::fmt::Display) -> RigError {
    let reason = reason.to_string();
    RigError::Program {
        program: what,
        reason,
    }
}

/// This program with `words` as its arguments. Its stderr goes to the file `log`.
fn command(words: &[&str], log: &Path) -> Result<Command, RigError> {
    let file = File::options().create(true).append(true).open(log);
    let file = file.map_err(|e| RigError::io(log, e))?;
    let mut command = Command::new(this_program()?);
    command.args(words).stdout(Stdio::null()).stderr(file);
    Ok(command)
}

/// The last line that a command wrote to its stderr file.
fn last_word(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("nothing").to_owned()
}

/// The process of `dyno ingest watch`, with what is needed to start it again.
pub(super) struct Watch {
    words: Vec<String>,
    log: PathBuf,
    running: Killed,
    restarts: u32,
}

impl Watch {
    pub(super) fn start(
        params: &ChainParams,
        dsn: &str,
        table: &Path,
        scratch: &Path,
    ) -> Result<Watch, RigError> {
        let words = [
            "ingest",
            "watch",
            &format!("pubsub://{TOPIC}"),
            "--dsn",
            dsn,
            "--into",
            &table.to_string_lossy(),
            "--batch-wait",
            &format!("{}ms", params.batch_wait.as_millis()),
        ]
        .map(str::to_owned);
        let log = scratch.join("watch.log");
        let running = spawn_watch(&words, &log)?;
        Ok(Watch {
            words: words.into(),
            log,
            running,
            restarts: 0,
        })
    }

    pub(super) fn kill(&mut self) -> Result<(), RigError> {
        self.running = spawn_watch(&self.words, &self.log)?;
        Ok(())
    }

    /// Starts the command again if it has ended by itself, as it does when a server that it needs
    /// returns an error.
    pub(super) fn look_after(&mut self) -> Result<(), RigError> {
        if let Ok(Some(status)) = self.running.0.try_wait() {
            self.restarts += 1;
            if self.restarts > RESTARTS_MOST {
                let last = last_word(&self.log);
                return Err(failed("dyno ingest watch", format!("{status}: {last}")));
            }
            self.running = spawn_watch(&self.words, &self.log)?;
        }
        Ok(())
    }
}

fn spawn_watch(words: &[String], log: &Path) -> Result<Killed, RigError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let spawned = command(&words, log)?.stdin(Stdio::null()).spawn();
    spawned
        .map(Killed)
        .map_err(|e| failed("dyno ingest watch", e))
}

/// The process of `dyno pubsub produce`, and the thread that writes the lines to its stdin.
pub(super) struct Producer {
    files: Vec<PathBuf>,
    rate: Option<f64>,
    began: Instant,
    dsn: String,
    log: PathBuf,
    running: Option<(Killed, JoinHandle<()>)>,
    restarts: u32,
}

impl Producer {
    pub(super) fn start(
        params: &ChainParams,
        dsn: &str,
        scratch: &Path,
    ) -> Result<Producer, RigError> {
        let mut producer = Producer {
            files: params.files.clone(),
            rate: params.rate,
            began: Instant::now(),
            dsn: dsn.to_owned(),
            log: scratch.join("produce.log"),
            running: None,
            restarts: 0,
        };
        producer.spawn()?;
        Ok(producer)
    }

    fn spawn(&mut self) -> Result<(), RigError> {
        let words = [
            "pubsub", "produce", TOPIC, "--resume", PRODUCER, "--dsn", &self.dsn,
        ];
        let spawned = command(&words, &self.log)?.stdin(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|e| failed("dyno pubsub produce", e))?;
        let pipe = child.stdin.take();
        let (files, rate, began) = (self.files.clone(), self.rate, self.began);
        // The lines of a run must reach a process that was started again from the first one on,
        // because the producer skips those that the topic has. So the thread reads the files itself
        // and keeps no position.
        let feeding = thread::spawn(move || {
            // The pipe breaks when its reader is killed. The error is ignored, because another
            // thread then feeds the next process.
            let _ = pipe.map(|pipe| feed(&files, rate, began, &mut BufWriter::new(pipe)));
        });
        self.running = Some((Killed(child), feeding));
        Ok(())
    }

    /// Kills the producer. Returns false if it had already finished.
    pub(super) fn kill(&mut self) -> Result<bool, RigError> {
        let Some((killed, _feeding)) = self.running.take() else {
            return Ok(false);
        };
        // The old thread is not joined: its next write fails, since the pipe has lost its reader.
        drop(killed);
        self.spawn()?;
        Ok(true)
    }

    /// Starts the producer again if it has failed. Returns true once it has finished.
    pub(super) fn look_after(&mut self) -> Result<bool, RigError> {
        let Some((running, _)) = &mut self.running else {
            return Ok(true);
        };
        // A successful end is the end of the input. Any other is a server that was away for a
        // moment, which the chain must survive; a command that cannot start at all runs out of
        // restarts.
        match running.0.try_wait() {
            Ok(Some(status)) if status.success() => {
                self.running = None;
                Ok(true)
            }
            Ok(Some(status)) => {
                self.restarts += 1;
                if self.restarts > RESTARTS_MOST {
                    let last = last_word(&self.log);
                    return Err(failed("dyno pubsub produce", format!("{status}: {last}")));
                }
                self.spawn()?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }
}

/// Writes the lines of the files, each when it is due at `rate`. The lines of a second attempt that
/// are due already are written at once.
fn feed(
    files: &[PathBuf],
    rate: Option<f64>,
    began: Instant,
    to: &mut impl Write,
) -> std::io::Result<()> {
    const TOGETHER: u64 = 50;
    // `began` is that of the whole chain. After a restart the lines that are due already are sent
    // without a pause, so the rate that the case asks for is caught up.
    let mut line = 0_u64;
    for file in files {
        let text = fs::read(file)?;
        for bytes in text.split_inclusive(|byte| *byte == b'\n') {
            if let Some(rate) = rate
                && line.is_multiple_of(TOGETHER)
            {
                let due = began + Duration::from_secs_f64(line as f64 / rate);
                let early = due.saturating_duration_since(Instant::now());
                if !early.is_zero() {
                    to.flush()?;
                    thread::sleep(early);
                }
            }
            to.write_all(bytes)?;
            line += 1;
        }
    }
    to.flush()
}

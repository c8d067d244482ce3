//! One file, in as many attempts as it takes.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dyno_http::ureq::Agent;
use dyno_ingest::load::Engine;
use dyno_ingest::scan::Block;
use dyno_ingest::source::{Source, open_path};
use dyno_random::backoff;

use crate::FetchError;
use crate::http::{Answer, Ask, agent, ask};
use crate::state::Version;

/// How to fetch.
#[derive(Debug)]
pub struct Fetch {
    /// Where the files are; ends in a slash.
    pub from: String,
    /// Where they go.
    pub folder: PathBuf,
    /// Attempts that bring nothing, one after the other, before a file is given up.
    pub attempts: u32,
    /// The wait after the first of them; each is twice the one before.
    pub first_wait: Duration,
    /// How long an attempt may take; the next one goes on from there.
    pub attempt: Duration,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has come.
    Fetched {
        /// Its length.
        bytes: u64,
        /// Bytes that were there from earlier attempts of another process.
        resumed: u64,
        /// What was odd about it.
        warning: Option<String>,
    },
    /// It was there, and the server has the same.
    Unchanged,
    /// The server has none.
    Missing,
}

/// How an attempt went.
enum Attempt {
    /// All of it is aside.
    Whole {
        resumed: u64,
    },
    Done(Outcome),
    /// Not all of it; whether there was progress.
    Again {
        reason: String,
        progress: bool,
    },
}

const LONGEST_WAIT: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(50);

impl Fetch {
    /// Fetches the file called `name` and tells `progress` how many bytes came.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub fn file(
        &self,
        name: &str,
        stop: &AtomicBool,
        progress: &dyn Fn(u64),
    ) -> Result<Outcome, FetchError> {
        let create = fs::create_dir_all(&self.folder);
        create.map_err(|e| FetchError::io("create", &self.folder, e))?;
        let path = self.folder.join(name);
        let file = OneFile {
            url: format!("{}{name}", self.from),
            aside: self.folder.join(format!("{name}.partial")),
            path,
            stop,
            progress,
        };
        let agent = agent(self.attempt);
        let mut failures = 0;
        let mut first = true;
        let mut resumed_at_first = 0;
        loop {
            let (reason, has_progress) = match file.attempt(&agent)? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Whole { resumed } => {
                    if first {
                        resumed_at_first = resumed;
                    }
                    return file.publish(resumed_at_first);
                }
                Attempt::Again { reason, progress } => (reason, progress),
            };
            first = false;
            failures = if has_progress { 1 } else { failures + 1 };
            if failures >= self.attempts {
                return Err(FetchError::Unreachable {
                    url: file.url,
                    reason,
                    attempts: failures,
                });
            }
            file.wait(backoff(self.first_wait, LONGEST_WAIT, failures))?;
        }
    }
}

struct OneFile<'a> {
    url: String,
    path: PathBuf,
    aside: PathBuf,
    stop: &'a AtomicBool,
    progress: &'a dyn Fn(u64),
}

impl OneFile<'_> {
    fn attempt(&self, agent: &Agent) -> Result<Attempt, FetchError> {
        self.check_stop()?;
        let begun = Version::read(&self.aside, &self.url);
        let there = length(&self.aside);
        let known = Version::read(&self.path, &self.url).filter(|_| self.path.exists());
        if there > 0
            && begun
                .as_ref()
                .is_some_and(|version| version.bytes == Some(there))
        {
            return Ok(Attempt::Whole { resumed: there });
        }
        let asking = match (&begun, &known) {
            (Some(version), _) if there > 0 => version
                .proof()
                .map_or(Ask::All, |of| Ask::Rest { of, from: there }),
            (_, Some(version)) => Ask::IfChanged(version),
            _ => Ask::All,
        };
        let answer = match ask(agent, &self.url, &asking) {
            Ok(answer) => answer,
            Err(failure) if failure.lasting => {
                return Err(FetchError::Unreachable {
                    url: self.url.clone(),
                    reason: failure.reason,
                    attempts: 1,
                });
            }
            Err(failure) => {
                return Ok(Attempt::Again {
                    reason: failure.reason,
                    progress: false,
                });
            }
        };
        match answer {
            Answer::Bytes {
                version,
                from,
                body,
            } => self.receive(version, from, body),
            Answer::Unchanged => Ok(Attempt::Done(Outcome::Unchanged)),
            Answer::Missing => Ok(Attempt::Done(Outcome::Missing)),
            Answer::NoSuchRange => {
                self.forget()?;
                Ok(Attempt::Again {
                    reason: "the server has no such range".to_owned(),
                    progress: false,
                })
            }
            Answer::Busy(status) => Ok(Attempt::Again {
                reason: format!("the server answers {status}"),
                progress: false,
            }),
            Answer::Refused(status) => Err(FetchError::Refused {
                url: self.url.clone(),
                status,
            }),
        }
    }

    /// Writes what comes aside, behind what is there or in its place.
    fn receive(
        &self,
        version: Version,
        from: u64,
        mut body: Box<dyn Read + Send>,
    ) -> Result<Attempt, FetchError> {
        let failed = |e| FetchError::io("write", &self.aside, e);
        // Where no version of the file is known, since it was copied here by hand or the server
        // does not name one, its length has to do.
        let known = Version::read(&self.path, &self.url);
        let is_named = known.is_some_and(|known| known.etag.or(known.last_modified).is_some());
        let same_length = version
            .bytes
            .is_some_and(|bytes| bytes > 0 && bytes == length(&self.path));
        if !is_named && same_length {
            version.write(&self.path).map_err(failed)?;
            return Ok(Attempt::Done(Outcome::Unchanged));
        }
        version.write(&self.aside).map_err(failed)?;
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(from == 0)
            .write(true)
            .append(from > 0)
            .open(&self.aside)
            .map_err(failed)?;
        let mut buffer = vec![0; 256 * 1024];
        let mut got = 0;
        let again = |reason: String, got| Attempt::Again {
            reason,
            progress: got > 0,
        };
        loop {
            self.check_stop()?;
            match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    file.write_all(&buffer[..n]).map_err(failed)?;
                    got += n as u64;
                    (self.progress)(n as u64);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Ok(again(e.to_string(), got)),
            }
        }
        if let Some(expected) = version.bytes.filter(|&bytes| bytes != from + got) {
            let reason = format!("{} of {expected} bytes came", from + got);
            return Ok(again(reason, got));
        }
        file.sync_all().map_err(failed)?;
        Ok(Attempt::Whole { resumed: from })
    }

    /// Checks what has come and gives it its name.
    fn publish(&self, resumed: u64) -> Result<Outcome, FetchError> {
        let failed = |e| FetchError::io("rename", &self.aside, e);
        let warning = match check(&self.aside) {
            Ok(warning) => warning,
            Err(error) => {
                self.forget()?;
                return Err(FetchError::Damaged {
                    url: self.url.clone(),
                    reason: error.to_string(),
                });
            }
        };
        fs::rename(&self.aside, &self.path).map_err(failed)?;
        Version::rename(&self.aside, &self.path).map_err(failed)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|e| FetchError::io("sync", folder, e))?;
        Ok(Outcome::Fetched {
            bytes: length(&self.path),
            resumed,
            warning,
        })
    }

    fn forget(&self) -> Result<(), FetchError> {
        let failed = |e| FetchError::io("remove", &self.aside, e);
        match fs::remove_file(&self.aside) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        Version::forget(&self.aside).map_err(failed)
    }

    fn check_stop(&self) -> Result<(), FetchError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(FetchError::Stopped);
        }
        Ok(())
    }

    fn wait(&self, wait: Duration) -> Result<(), FetchError> {
        let mut left = wait;
        while !left.is_zero() {
            self.check_stop()?;
            let step = left.min(TICK);
            thread::sleep(step);
            left -= step;
        }
        Ok(())
    }
}

/// 0 where there is none.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Inflates all of it, which compares its checksums, and gives what is odd about it.
fn check(path: &Path) -> dyno_ingest::Result<Option<String>> {
    match open_path(path, Engine::Native, None)? {
        Source::Parquet(..) => Ok(None),
        Source::Text(mut text) => {
            let mut block = Block::default();
            while text.next_block(&mut block)? {}
            Ok(text.warning())
        }
    }
}

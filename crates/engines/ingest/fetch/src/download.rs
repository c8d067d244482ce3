//! Downloads one file, in as many attempts as it takes.

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

/// The parameters of a download.
#[derive(Debug)]
pub struct Fetch {
    /// The URL of the folder that the files are in, which ends in a slash.
    pub from: String,
    /// The folder for the files, which is created if it is missing.
    pub folder: PathBuf,
    /// How many attempts in succession may bring no byte before a file is given up.
    pub attempts: u32,
    /// The wait after the first of them; each later wait is twice the one before.
    pub first_wait: Duration,
    /// The time limit of one attempt. The next one continues after the bytes that it brought.
    pub attempt: Duration,
}

/// The outcome of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The file was downloaded and checked, and has its name.
    Fetched {
        /// Length of the file in bytes.
        bytes: u64,
        /// Bytes of it that an earlier process had downloaded.
        resumed: u64,
        /// Something odd about the file that does not prevent loading it, in a sentence.
        warning: Option<String>,
    },
    /// The file was there already, and the server has the same version.
    Unchanged,
    /// The server has no such file.
    Missing,
}

/// The result of one attempt.
enum Attempt {
    /// The partial file is complete.
    Whole {
        resumed: u64,
    },
    Done(Outcome),
    /// The attempt failed and may be repeated.
    Again {
        reason: String,
        progress: bool,
    },
}

const LONGEST_WAIT: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(50);

impl Fetch {
    /// Downloads the file called `name`. Calls `progress` with the number of bytes that each read
    /// brought.
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
            // A download that is cut off again and again still ends if each attempt brings
            // something.
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
        // A file that was cut or replaced on this machine is not the version that is written beside
        // it, and the server would answer that it has not changed.
        let known = Version::read(&self.path, &self.url)
            .filter(|_| self.path.exists())
            .filter(|known| known.bytes.is_none_or(|bytes| bytes == length(&self.path)));
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
            // Such a failure, for example a name that does not exist, would come again.
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
            Answer::NoRest(reason) => {
                // Asked again for the same rest, the server would give the same answer.
                self.forget()?;
                Ok(Attempt::Again {
                    reason: reason.to_owned(),
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

    /// Writes the body to the partial file: from byte `from` on, or in place of what is there if
    /// that is 0.
    fn receive(
        &self,
        version: Version,
        from: u64,
        mut body: Box<dyn Read + Send>,
    ) -> Result<Attempt, FetchError> {
        let failed = |e| FetchError::io("write", &self.aside, e);
        // No version of the file is known if it was copied here by hand or the server sends none.
        // Then a file of the same length counts as the same.
        let known = Version::read(&self.path, &self.url);
        let is_named = known.is_some_and(|known| known.etag.or(known.last_modified).is_some());
        let same_length = version
            .bytes
            .is_some_and(|bytes| bytes > 0 && bytes == length(&self.path));
        if !is_named && same_length {
            version.write(&self.path).map_err(failed)?;
            return Ok(Attempt::Done(Outcome::Unchanged));
        }
        // The bytes of another version go before its name does. In the other order a kill between
        // the two would leave old bytes under the new name, and the next attempt would ask for the
        // rest of the new version and put it behind them.
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(from == 0)
            .write(true)
            .append(from > 0)
            .open(&self.aside)
            .map_err(failed)?;
        version.write(&self.aside).map_err(failed)?;
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
        // The body can end early without an error, so the length that the server stated decides.
        if let Some(expected) = version.bytes.filter(|&bytes| bytes != from + got) {
            let reason = format!("{} of {expected} bytes came", from + got);
            return Ok(again(reason, got));
        }
        Ok(Attempt::Whole { resumed: from })
    }

    /// Checks the partial file, makes it durable, and gives it its name.
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
        // The bytes are synced here and not where they are received, because an earlier process may
        // have received the last of them and died. A file that has its name but, after a power cut,
        // not its bytes would count as unchanged for ever.
        let synced = File::open(&self.aside).and_then(|file| file.sync_all());
        synced.map_err(|e| FetchError::io("sync", &self.aside, e))?;
        fs::rename(&self.aside, &self.path).map_err(failed)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|e| FetchError::io("sync", folder, e))?;
        // The version follows the file. If only the version had its new name, the older file would
        // count as the newer one. A file without its version costs one more download.
        Version::rename(&self.aside, &self.path).map_err(failed)?;
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

/// The length of a file; 0 if there is none.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Inflates the whole file, which compares its checksums. Returns a warning if something about it
/// is odd.
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

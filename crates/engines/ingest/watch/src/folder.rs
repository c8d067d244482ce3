//! Loads the files of a folder as they arrive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyno_ingest::Error;
use dyno_ingest::load::{ArchiveReport, Before, Input, Outcome, Progress};
use dyno_ingest_feeds::{Feed, feed_of_file, named};
use tracing::{error, info, warn};

use crate::pause::{Pause, wait};
use crate::{Destination, Files, Metrics, WatchError};

/// Files per load. Each is a commit of its own, and a stop request is checked between two.
const TOGETHER: usize = 64;
/// Shortest and longest pause between attempts while a table or a disk is unavailable.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How a folder is watched.
#[derive(Debug, Clone)]
pub struct FolderSettings {
    /// The folder, whose subfolders are ignored.
    pub folder: PathBuf,
    /// The feed of the files; `None` recognizes it by how each begins.
    pub feed: Option<&'static Feed>,
    /// A file is complete once it has not changed for this long.
    pub settle: Duration,
    /// Time between two listings of the folder.
    pub every: Duration,
    /// Ends when all files are handled, or at the first failure that is not caused by a file.
    pub once: bool,
}

/// Counts of files and rows since the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FolderSummary {
    /// Files loaded, including those that replaced an earlier version.
    pub loaded: u64,
    /// Files that the table had already.
    pub there: u64,
    /// Files that could not be loaded.
    pub bad: u64,
    /// Good rows of the loaded files.
    pub rows: u64,
}

/// A folder whose files are loaded into one table.
pub struct Folder<'a> {
    settings: FolderSettings,
    destination: &'a dyn Destination,
    metrics: Metrics,
    files: Files,
    /// The file that each archive was read from.
    owners: BTreeMap<String, PathBuf>,
    summary: FolderSummary,
}

impl<'a> Folder<'a> {
    /// Prepares to watch; nothing is listed yet.
    pub fn new(
        settings: FolderSettings,
        destination: &'a dyn Destination,
        metrics: Metrics,
    ) -> Folder<'a> {
        Folder {
            files: Files::new(&settings.folder, settings.settle),
            settings,
            destination,
            metrics,
            owners: BTreeMap::new(),
            summary: FolderSummary::default(),
        }
    }

    /// Loads files as they arrive until `stop` is set or, with `once`, until all are handled. Logs
    /// the result of each file. One that cannot be loaded is reported once, and tried again when it
    /// changes.
    ///
    /// # Errors
    /// When the folder cannot be listed, and what [`WatchError::may_pass`] does not hold of; once,
    /// the others too.
    pub fn run(&mut self, stop: &Arc<AtomicBool>) -> Result<FolderSummary, WatchError> {
        let mut pause = Pause::new(PAUSES.0, PAUSES.1);
        while !stop.load(Ordering::Relaxed) {
            match self.look(stop) {
                Ok(()) => pause.over(),
                Err(WatchError::Ingest(Error::Stopped)) => break,
                // A run with `once` returns the error to its caller. A watch that goes on reports
                // each new message once and tries again after a pause that grows.
                Err(error) if error.may_pass() && !self.settings.once => {
                    self.metrics.errors.add(1);
                    let reason = error.to_string();
                    if pause.failed(&reason).1 {
                        warn!("{reason}; it is tried again");
                    }
                    pause.wait(stop);
                    continue;
                }
                Err(error) => return Err(error),
            }
            if self.settings.once && self.files.waiting() == 0 {
                break;
            }
            // With `once`, a file that has not settled yet is looked at again as soon as it may
            // have.
            let every = if self.settings.once {
                self.settings.every.min(self.settings.settle)
            } else {
                self.settings.every
            };
            wait(every, stop);
        }
        Ok(self.summary)
    }

    /// Loads what arrived since, when no more files will come.
    ///
    /// # Errors
    /// As [`Folder::run`].
    pub fn last_look(&mut self) -> Result<FolderSummary, WatchError> {
        self.look(&Arc::default())?;
        Ok(self.summary)
    }

    /// Lists the folder once and loads what is ready.
    fn look(&mut self, stop: &Arc<AtomicBool>) -> Result<(), WatchError> {
        let ready = self.files.look(Instant::now())?;
        let files = &self.files;
        // When the owner of an archive is gone, another file may take its place.
        self.owners.retain(|_, path| files.has(path));
        self.waiting();
        let mut of_feed: Vec<(&'static Feed, Vec<PathBuf>)> = Vec::new();
        for path in ready {
            match self.feed(&path) {
                Ok(Some(feed)) => {
                    let mut known = of_feed.iter_mut();
                    match known.find(|(known, _)| known.name == feed.name) {
                        Some((_, paths)) => paths.push(path),
                        None => of_feed.push((feed, vec![path])),
                    }
                }
                Ok(None) => {}
                Err(error) if is_of_file(&error) => self.bad(&path, &error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        for (feed, paths) in of_feed {
            for paths in self.known_apart(feed, paths).chunks(TOGETHER) {
                self.load(feed, paths, stop)?;
            }
        }
        // With `once` an error ends the watch, so the other files come first.
        match self.files.take_unreadable() {
            Some(error) if !self.settings.once || self.files.waiting() == 0 => Err(error),
            _ => Ok(()),
        }
    }

    /// The feed of a file; `None` if the file is gone.
    fn feed(&self, path: &Path) -> Result<Option<&'static Feed>, Error> {
        if let Some(feed) = self.settings.feed {
            return Ok(Some(feed));
        }
        match feed_of_file(path) {
            Ok(Some(name)) => Ok(named(name)),
            Ok(None) => Err(Error::Refused {
                path: path.to_owned(),
                reason: "it looks like no feed's; --feed names one".to_owned(),
            }),
            // The file was removed while it was looked at, so there is no failure to report.
            Err(_) if !path.exists() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The files that are distinct archives. Two files of one archive would replace each other for
    /// ever, so the second is refused.
    fn known_apart(&mut self, feed: &'static Feed, paths: Vec<PathBuf>) -> Vec<PathBuf> {
        let mut apart = Vec::new();
        for path in paths {
            let archive = feed.identity(None, &path);
            match self.owners.get(&archive) {
                Some(owner) if *owner != path => {
                    let reason = format!(
                        "{}: it is archive {archive}, and so is {}",
                        path.display(),
                        owner.display()
                    );
                    self.bad(&path, &reason);
                }
                _ => {
                    self.owners.insert(archive, path.clone());
                    apart.push(path);
                }
            }
        }
        apart
    }

    fn load(
        &mut self,
        feed: &'static Feed,
        paths: &[PathBuf],
        stop: &Arc<AtomicBool>,
    ) -> Result<(), WatchError> {
        let progress = Progress {
            stop: Arc::clone(stop),
            ..Progress::default()
        };
        let inputs = paths.iter().cloned().map(Input::File).collect();
        let reports = self.destination.load(feed, inputs, None, &progress)?;
        let mut failure = None;
        for report in reports {
            for warning in &report.warnings {
                warn!("{warning}");
            }
            // The other files of this load count all the same. The one that failed stays waiting
            // and is tried again.
            if let Err(error) = self.account(report) {
                failure = Some(error);
            }
        }
        self.waiting();
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Records the result of a file. A failure that the file did not cause leaves it to be tried
    /// again.
    fn account(&mut self, report: ArchiveReport) -> Result<(), Error> {
        let (path, name) = (&report.path, &report.identity);
        match report.outcome {
            Outcome::Loaded {
                rows,
                bad_rows,
                source_bytes,
                before,
                ..
            } => {
                self.summary.loaded += 1;
                self.summary.rows += rows;
                let (how, counted) = match before {
                    Before::Nothing => ("loaded", &self.metrics.loaded),
                    Before::Earlier => ("replaced", &self.metrics.replaced),
                    Before::Damaged => ("mended", &self.metrics.replaced),
                };
                counted.add(1);
                self.metrics.rows.add(rows);
                self.metrics.bad_rows.add(bad_rows);
                self.metrics.bytes.add(source_bytes);
                self.metrics.committed_at_s.set(now_s());
                self.files.done(path);
                info!(rows, bad_rows, source_bytes, "{how} {name}");
            }
            Outcome::AlreadyThere { .. } => {
                self.summary.there += 1;
                self.metrics.there.add(1);
                self.files.done(path);
            }
            // The file disappeared after the listing, so there is nothing to report.
            Outcome::Failed(_) if !path.exists() => {}
            Outcome::Failed(error) if is_of_file(&error) => {
                let (path, reason) = (path.clone(), error.to_string());
                self.bad(&path, &reason);
            }
            Outcome::Failed(error) => return Err(error),
        }
        Ok(())
    }

    fn bad(&mut self, path: &Path, reason: &str) {
        self.summary.bad += 1;
        self.metrics.bad.add(1);
        self.files.done(path);
        error!("not loaded: {reason}");
    }

    fn waiting(&self) {
        let waiting = i64::try_from(self.files.waiting()).unwrap_or(i64::MAX);
        self.metrics.waiting.set(waiting);
    }
}

/// Whether the file itself caused the failure, which then lasts until the file changes.
fn is_of_file(error: &Error) -> bool {
    matches!(
        error,
        Error::Input { .. } | Error::Refused { .. } | Error::TooManyBad { .. }
    )
}

/// Wall-clock time in seconds since 1970.
pub(crate) fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

//! Loads the files of a folder as they come.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyno_ingest::Error;
use dyno_ingest::load::{ArchiveReport, Before, Input, Outcome, Progress};
use dyno_ingest_feeds::feed_of_file;

use crate::pause::{Pause, wait};
use crate::{Destination, Files, Metrics, WatchError, Whose};

/// Files handed to one load: each is a commit of its own, and a wish to stop is heard between two.
const TOGETHER: usize = 64;
/// Pauses between attempts while a table or a disk is not to be had.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How a folder is watched.
#[derive(Debug, Clone)]
pub struct FolderSettings {
    /// It.
    pub folder: PathBuf,
    /// Whose files they are; what each begins with tells, where it is not said.
    pub whose: Option<Whose>,
    /// A file is complete when it has not changed for so long.
    pub settle: Duration,
    /// Between two looks.
    pub every: Duration,
    /// End when all that is there is dealt with, and at the first failure that is not a file's own.
    pub once: bool,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FolderSummary {
    /// Files loaded, those that took the place of an earlier form included.
    pub loaded: u64,
    /// Files that were in the table already.
    pub there: u64,
    /// Files that could not be loaded.
    pub bad: u64,
    /// Good rows of those loaded.
    pub rows: u64,
}

/// A folder whose files are loaded.
pub struct Folder<'a> {
    settings: FolderSettings,
    destination: &'a dyn Destination,
    metrics: Metrics,
    files: Files,
    /// Which file an archive came from.
    owners: BTreeMap<String, PathBuf>,
    summary: FolderSummary,
}

impl<'a> Folder<'a> {
    /// One that is not looked into yet.
    pub fn new(
        settings: FolderSettings,
        destination: &'a dyn Destination,
        metrics: Metrics,
    ) -> Folder<'a> {
        Folder {
            files: Files::of(&settings.folder, settings.settle),
            settings,
            destination,
            metrics,
            owners: BTreeMap::new(),
            summary: FolderSummary::default(),
        }
    }

    /// Loads what comes until `stop` is set, or, once, until all is dealt with. Tells `say` what
    /// became of each file; a file that cannot be loaded is told of once, and tried again when it
    /// changes.
    ///
    /// # Errors
    /// When the folder cannot be listed, and what [`WatchError::may_pass`] does not hold of; once,
    /// the others too.
    pub fn run(
        &mut self,
        stop: &Arc<AtomicBool>,
        say: &dyn Fn(&str),
    ) -> Result<FolderSummary, WatchError> {
        let mut pause = Pause::new(PAUSES.0, PAUSES.1);
        while !stop.load(Ordering::Relaxed) {
            match self.look(stop, say) {
                Ok(()) => pause.over(),
                Err(WatchError::Ingest(Error::Stopped)) => break,
                Err(error) if error.may_pass() && !self.settings.once => {
                    self.metrics.errors.add(1);
                    let reason = error.to_string();
                    if pause.failed(&reason).1 {
                        say(&format!("{reason}; it is tried again"));
                    }
                    pause.wait(stop);
                    continue;
                }
                Err(error) => return Err(error),
            }
            if self.settings.once && self.files.waiting() == 0 {
                break;
            }
            let every = match self.settings.once {
                true => self.settings.every.min(self.settings.settle),
                false => self.settings.every,
            };
            wait(every, stop);
        }
        Ok(self.summary)
    }

    /// Loads what came since, when there will be no more.
    ///
    /// # Errors
    /// As [`Folder::run`].
    pub fn last_look(&mut self, say: &dyn Fn(&str)) -> Result<FolderSummary, WatchError> {
        self.look(&Arc::default(), say)?;
        Ok(self.summary)
    }

    /// One look at the folder, and what follows from it.
    fn look(&mut self, stop: &Arc<AtomicBool>, say: &dyn Fn(&str)) -> Result<(), WatchError> {
        let ready = self.files.look(Instant::now())?;
        let files = &self.files;
        self.owners.retain(|_, path| files.has(path));
        self.waiting();
        let mut of_feed: Vec<(Whose, Vec<PathBuf>)> = Vec::new();
        for path in ready {
            match self.whose(&path) {
                Ok(Some(whose)) => {
                    let mut known = of_feed.iter_mut();
                    match known.find(|(feed, _)| feed.name() == whose.name()) {
                        Some((_, paths)) => paths.push(path),
                        None => of_feed.push((whose, vec![path])),
                    }
                }
                Ok(None) => {}
                Err(error) if is_of_file(&error) => self.bad(&path, &error.to_string(), say),
                Err(error) => return Err(error.into()),
            }
        }
        for (whose, paths) in of_feed {
            for paths in self.known_apart(whose, paths, say).chunks(TOGETHER) {
                self.load(whose, paths, stop, say)?;
            }
        }
        Ok(())
    }

    /// Whose a file is; nothing when it is gone.
    fn whose(&self, path: &Path) -> Result<Option<Whose>, Error> {
        if let Some(whose) = self.settings.whose {
            return Ok(Some(whose));
        }
        match feed_of_file(path) {
            Ok(Some(name)) => Ok(Whose::named(name)),
            Ok(None) => Err(Error::Refused {
                path: path.to_owned(),
                reason: "it looks like no feed's; --feed names one".to_owned(),
            }),
            Err(_) if !path.exists() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The files that are archives of their own. Of two that are one archive each would replace the
    /// other for ever.
    fn known_apart(
        &mut self,
        whose: Whose,
        paths: Vec<PathBuf>,
        say: &dyn Fn(&str),
    ) -> Vec<PathBuf> {
        let mut apart = Vec::new();
        for path in paths {
            let archive = whose.archive(&path);
            match self.owners.get(&archive) {
                Some(owner) if *owner != path => {
                    let reason = format!(
                        "{}: it is archive {archive}, and so is {}",
                        path.display(),
                        owner.display()
                    );
                    self.bad(&path, &reason, say);
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
        whose: Whose,
        paths: &[PathBuf],
        stop: &Arc<AtomicBool>,
        say: &dyn Fn(&str),
    ) -> Result<(), WatchError> {
        let progress = Progress {
            stop: Arc::clone(stop),
            ..Progress::default()
        };
        let inputs = paths.iter().cloned().map(Input::File).collect();
        let reports = self.destination.load(whose, inputs, None, &progress)?;
        let mut failure = None;
        for report in reports {
            for warning in &report.warnings {
                say(&format!("warning: {warning}"));
            }
            if let Err(error) = self.account(report, say) {
                failure = Some(error);
            }
        }
        self.waiting();
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Notes what became of a file. A failure that is not its own leaves it to be tried again.
    fn account(&mut self, report: ArchiveReport, say: &dyn Fn(&str)) -> Result<(), Error> {
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
                say(&format!("{how} {name}: {rows} rows, {bad_rows} bad"));
            }
            Outcome::AlreadyThere { .. } => {
                self.summary.there += 1;
                self.metrics.there.add(1);
                self.files.done(path);
            }
            // Gone since the look: there is nothing to be said of it.
            Outcome::Failed(_) if !path.exists() => {}
            Outcome::Failed(error) if is_of_file(&error) => {
                let (path, reason) = (path.clone(), error.to_string());
                self.bad(&path, &reason, say);
            }
            Outcome::Failed(error) => return Err(error),
        }
        Ok(())
    }

    fn bad(&mut self, path: &Path, reason: &str, say: &dyn Fn(&str)) {
        self.summary.bad += 1;
        self.metrics.bad.add(1);
        self.files.done(path);
        say(&format!("not loaded: {reason}"));
    }

    fn waiting(&self) {
        let waiting = i64::try_from(self.files.waiting()).unwrap_or(i64::MAX);
        self.metrics.waiting.set(waiting);
    }
}

/// Whether a failure is the file's own, and will be the same until it changes.
fn is_of_file(error: &Error) -> bool {
    matches!(
        error,
        Error::Input { .. } | Error::Refused { .. } | Error::TooManyBad { .. }
    )
}

/// Seconds since 1970.
pub(crate) fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

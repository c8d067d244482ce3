//! Writing a run, one sample at a time, so that a crash loses at most one.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::RecordError;
use crate::latencies::LatencyLog;
use crate::migration::{MAGIC, run_from_json};
use crate::profile::Profile;
use crate::schema::{Run, SCHEMA_VERSION, Sample};
use crate::store::{StoredRun, Warning, Withdrawal, parse_samples};

/// Name of the file that describes a run.
pub const RUN_FILE: &str = "run.json";
/// Name of the file with one sample a line.
pub const SAMPLES_FILE: &str = "samples.ndjson";
/// Name of the file that withdraws the figures of the record beside it.
pub const WITHDRAWN_FILE: &str = "WITHDRAWN.md";

/// The directory of a run that is being written. It holds a lock on the samples file, so that one
/// process writes a run at a time; readers need none.
#[derive(Debug)]
pub struct RunDir {
    dir: PathBuf,
    run: Run,
    samples: File,
    samples_path: PathBuf,
}

impl RunDir {
    /// Makes `dir` (and its parents) and writes `run.json` into it, with the magic and version of
    /// this program whatever `run` says.
    ///
    /// # Errors
    /// [`RecordError::Exists`] when `dir` holds a run, [`RecordError::Io`] when it can't be made,
    /// [`RecordError::Unstorable`] when a number of `run` is not finite.
    pub fn create(dir: &Path, mut run: Run) -> Result<RunDir, RecordError> {
        run.magic = MAGIC.to_owned();
        run.schema_version = SCHEMA_VERSION;
        std::fs::create_dir_all(dir).map_err(RecordError::io(dir, "create directory"))?;
        let samples_path = dir.join(SAMPLES_FILE);
        let samples = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&samples_path)
            .map_err(RecordError::io(&samples_path, "create"))?;
        // The lock comes before the look at `run.json`: of two processes that create the same run
        // at once, the second fails here and not after it has replaced the description of the
        // first.
        lock(&samples, &samples_path)?;
        if dir.join(RUN_FILE).exists() {
            return Err(RecordError::Exists {
                path: dir.to_path_buf(),
            });
        }
        // The description is on disk before the first sample, so that samples are never found
        // without the plan that they belong to.
        write_run(dir, &run)?;
        Ok(RunDir {
            dir: dir.to_path_buf(),
            run,
            samples,
            samples_path,
        })
    }

    /// Opens a run that was interrupted, to append to it. Only its first `keep` samples stay: the
    /// caller drops those of a block that was not finished, whose partners would be missing.
    ///
    /// # Errors
    /// As [`RunDir::open`], and [`RecordError::Locked`] while another process writes the run.
    pub fn resume(dir: &Path, keep: usize) -> Result<RunDir, RecordError> {
        let mut run = RunDir::read_run(dir)?;
        let samples_path = dir.join(SAMPLES_FILE);
        let mut samples = OpenOptions::new()
            .append(true)
            .open(&samples_path)
            .map_err(RecordError::io(&samples_path, "open"))?;
        lock(&samples, &samples_path)?;
        let bytes = std::fs::read(&samples_path).map_err(RecordError::io(&samples_path, "read"))?;
        // Every sample is one line. What follows the last kept one goes, a torn line as well,
        // before anything is appended behind it.
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').take(keep);
        let length: usize = lines.map(<[u8]>::len).sum();
        // A crash or an editor may have cut the line end of the last kept sample, and the next one
        // would then be written on the same line.
        let is_whole = length == 0 || bytes[..length].ends_with(b"\n");
        let line_end: &[u8] = if is_whole { b"" } else { b"\n" };
        samples
            .set_len(length as u64)
            .and_then(|()| samples.write_all(line_end))
            .and_then(|()| samples.sync_all())
            .map_err(RecordError::io(&samples_path, "shorten"))?;
        run.finished_at = None;
        write_run(dir, &run)?;
        Ok(RunDir {
            dir: dir.to_path_buf(),
            run,
            samples,
            samples_path,
        })
    }

    /// Where the run lies; children leave their histogram logs here.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The run as written so far.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Writes one sample and returns when it is on stable storage.
    ///
    /// # Errors
    /// [`RecordError::Unstorable`] for a number that JSON cannot hold (NaN, infinity), named;
    /// [`RecordError::Io`] when the disk refuses, after which this sample may be torn.
    pub fn append(&mut self, sample: &Sample) -> Result<(), RecordError> {
        // JSON has no NaN, and would write null in its place, which no later reader could take for
        // a number.
        self.check_finite(sample)?;
        let mut line = serde_json::to_vec(sample).map_err(|e| RecordError::Unstorable {
            path: self.samples_path.clone(),
            object: format!("sample of {} on {}", sample.case, sample.system),
            reason: e.to_string(),
        })?;
        line.push(b'\n');
        // One call for the whole line: a crash tears it or not, it never interleaves.
        self.samples
            .write_all(&line)
            .and_then(|()| self.samples.sync_data())
            .map_err(RecordError::io(&self.samples_path, "append"))
    }

    /// Marks the run as ended in good order. `finished_at` is UTC, RFC 3339.
    ///
    /// # Errors
    /// [`RecordError::Io`] when `run.json` can't be replaced; the old one then stands.
    pub fn finish(mut self, finished_at: &str) -> Result<(), RecordError> {
        self.run.finished_at = Some(finished_at.to_owned());
        write_run(&self.dir, &self.run)
    }

    /// Reads a run back, finished or not.
    ///
    /// # Errors
    /// [`RecordError::NoRun`] without a `run.json`, [`RecordError::Newer`] for a version that
    /// this program doesn't know, [`RecordError::Malformed`] with file and line otherwise.
    pub fn open(dir: &Path) -> Result<StoredRun, RecordError> {
        let run = RunDir::read_run(dir)?;
        // Readers take no lock, so a run that goes on may show a last line that is half written.
        // `parse_samples` passes over it with a warning.
        let path = dir.join(SAMPLES_FILE);
        let bytes = std::fs::read(&path).map_err(RecordError::io(&path, "read"))?;
        let (samples, torn) = parse_samples(&path, &bytes)?;
        let mut warnings: Vec<Warning> = torn.into_iter().collect();
        if run.finished_at.is_none() {
            // The name alone, so that a report reads the same wherever its record lies.
            let name = dir.file_name().unwrap_or(dir.as_os_str());
            let text = format!(
                "{}: the run did not finish: it goes on, or it was cut short",
                name.to_string_lossy()
            );
            warnings.push(Warning(text));
        }
        let latencies = read_latencies(dir, &samples, &mut warnings);
        let profiles = read_profiles(dir, &run, &mut warnings);
        Ok(StoredRun {
            run,
            samples,
            latencies,
            profiles,
            warnings,
            withdrawn: read_withdrawal(dir)?,
        })
    }

    /// Reads `run.json` alone.
    ///
    /// # Errors
    /// As [`RunDir::open`].
    pub fn read_run(dir: &Path) -> Result<Run, RecordError> {
        let path = dir.join(RUN_FILE);
        if !path.exists() {
            return Err(RecordError::NoRun {
                path: dir.to_path_buf(),
            });
        }
        let text = std::fs::read_to_string(&path).map_err(RecordError::io(&path, "read"))?;
        run_from_json(&path, &text)
    }

    /// Writes a report (`report.html`, `report.json`...) beside the record, whole or not at all.
    ///
    /// # Errors
    /// [`RecordError::Io`] when the directory can't be written to.
    pub fn write_report(dir: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, RecordError> {
        let path = dir.join(name);
        replace_file(&path, bytes)?;
        Ok(path)
    }

    fn check_finite(&self, sample: &Sample) -> Result<(), RecordError> {
        let metrics = sample.metrics.iter().map(|(name, v)| (name.as_str(), *v));
        let windows = sample.windows.iter().map(|v| ("windows", *v));
        let windows = windows.chain(sample.window_s.map(|v| ("window_s", v)));
        let times = [("at_s", sample.at_s), ("wall_s", sample.wall_s)];
        match metrics
            .chain(windows)
            .chain(times)
            .find(|(_, v)| !v.is_finite())
        {
            None => Ok(()),
            Some((field, value)) => Err(RecordError::Unstorable {
                path: self.samples_path.clone(),
                object: format!("sample of {} on {}: {field}", sample.case, sample.system),
                reason: format!("{value} is not a finite number"),
            }),
        }
    }
}

/// Reads the logs that samples name. A log that is gone is passed over, because records are also
/// kept without their logs, which are large; one that is there and broken becomes a warning.
fn read_latencies(
    dir: &Path,
    samples: &[Sample],
    warnings: &mut Vec<Warning>,
) -> BTreeMap<String, LatencyLog> {
    let mut latencies = BTreeMap::new();
    for file in samples
        .iter()
        .filter_map(|sample| sample.histogram.as_ref())
    {
        let path = dir.join(file);
        // The name comes from the record, and a record of a stranger may name any file.
        let is_own = Path::new(file).components().count() == 1;
        if !is_own || !path.exists() {
            continue;
        }
        match LatencyLog::read(&path) {
            Ok(log) => {
                latencies.insert(file.clone(), log);
            }
            Err(reason) => warnings.push(Warning(format!("{}: {reason}", path.display()))),
        }
    }
    latencies
}

fn read_profiles(dir: &Path, run: &Run, warnings: &mut Vec<Warning>) -> Vec<Profile> {
    let mut profiles = Vec::new();
    let cases = run.plan.cases.iter();
    for read in cases.flat_map(|case| Profile::read_case(dir, case)) {
        match read {
            Ok(profile) => profiles.push(profile),
            Err((path, reason)) => warnings.push(Warning(format!("{}: {reason}", path.display()))),
        }
    }
    profiles
}

/// A `WITHDRAWN.md` that cannot be read is an error, because without it withdrawn figures would
/// look valid.
fn read_withdrawal(dir: &Path) -> Result<Option<Withdrawal>, RecordError> {
    let path = dir.join(WITHDRAWN_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(Withdrawal::from_markdown(&text))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError::io(&path, "read")(error)),
    }
}

fn lock(samples: &File, path: &Path) -> Result<(), RecordError> {
    samples.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => RecordError::Locked {
            path: path.to_path_buf(),
        },
        TryLockError::Error(source) => RecordError::Io {
            path: path.to_path_buf(),
            doing: "lock",
            source,
        },
    })
}

fn write_run(dir: &Path, run: &Run) -> Result<(), RecordError> {
    let path = dir.join(RUN_FILE);
    let mut bytes = serde_json::to_vec_pretty(run).map_err(|e| RecordError::Unstorable {
        path: path.clone(),
        object: "run".to_owned(),
        reason: e.to_string(),
    })?;
    bytes.push(b'\n');
    // JSON writes NaN as null, which would make a record that cannot be read back.
    let text = String::from_utf8_lossy(&bytes);
    run_from_json(&path, &text).map_err(|e| RecordError::Unstorable {
        path: path.clone(),
        object: "run".to_owned(),
        reason: format!("would not read back: {e}"),
    })?;
    replace_file(&path, &bytes)
}

/// Replaces a file whole: a reader sees the old bytes or the new ones, also after a crash.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    // The partial file lies beside the target, because a rename is atomic only within one file
    // system. It has a fixed name, so that what a crash leaves is overwritten by the next attempt.
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let mut file = File::create(&partial).map_err(RecordError::io(&partial, "create"))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(RecordError::io(&partial, "write"))?;
    // The bytes were synced before they get the name. Otherwise a crash could leave the name with
    // an empty file.
    std::fs::rename(&partial, path).map_err(RecordError::io(path, "rename into place"))?;
    // The name itself must survive a crash too, hence the directory is synced.
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(RecordError::io(parent, "sync"))
}

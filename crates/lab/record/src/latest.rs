//! Finds runs in a directory of runs.

use std::path::{Path, PathBuf};

use crate::error::RecordError;
use crate::run_dir::{RUN_FILE, RunDir};
use crate::store::Warning;

/// A run found in a directory of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEntry {
    /// Directory of the run, below the one that was listed.
    pub path: PathBuf,
    /// Name of the suite that ran.
    pub suite: String,
    /// UTC start of the run, RFC 3339.
    pub started_at: String,
    /// Whether it ended in good order.
    pub finished: bool,
}

/// Lists the runs directly under `runs`, the oldest first. A run that cannot be read becomes a
/// warning, so that one bad directory does not hide the others.
///
/// # Errors
/// When `runs` itself cannot be listed.
pub fn list_runs(runs: &Path) -> Result<(Vec<RunEntry>, Vec<Warning>), RecordError> {
    let mut entries = Vec::new();
    let mut warnings = Vec::new();
    for entry in std::fs::read_dir(runs).map_err(RecordError::io(runs, "list"))? {
        let path = entry.map_err(RecordError::io(runs, "list"))?.path();
        if !path.join(RUN_FILE).exists() {
            continue;
        }
        match RunDir::read_run(&path) {
            Ok(run) => entries.push(RunEntry {
                path,
                suite: run.plan.suite,
                started_at: run.started_at,
                finished: run.finished_at.is_some(),
            }),
            Err(error) => warnings.push(Warning(error.to_string())),
        }
    }
    // RFC 3339 in UTC sorts as text; the path settles two starts in one second.
    entries.sort_by(|a, b| (&a.started_at, &a.path).cmp(&(&b.started_at, &b.path)));
    warnings.sort();
    Ok((entries, warnings))
}

/// Finds every directory with a `run.json` below `root`, `root` itself included, sorted by path.
/// Symbolic links are not followed, so a loop of links ends nowhere.
///
/// # Errors
/// When a directory cannot be listed.
pub fn find_runs(root: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let mut found = Vec::new();
    let mut to_list = vec![root.to_path_buf()];
    while let Some(dir) = to_list.pop() {
        if dir.join(RUN_FILE).exists() {
            found.push(dir);
            // What lies below a record belongs to it, so it is not searched for others.
            continue;
        }
        for entry in std::fs::read_dir(&dir).map_err(RecordError::io(&dir, "list"))? {
            let entry = entry.map_err(RecordError::io(&dir, "list"))?;
            let kind = entry.file_type().map_err(RecordError::io(&dir, "list"))?;
            if kind.is_dir() {
                to_list.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The directory of the latest run under `runs`, of `suite` when one is named. A directory that
/// is itself a run is answered as it is, so that a command takes either.
///
/// # Errors
/// [`RecordError::NoRun`] when there is none; the warnings of unreadable runs are then lost, so
/// call [`list_runs`] to show them.
pub fn latest_run(runs: &Path, suite: Option<&str>) -> Result<PathBuf, RecordError> {
    if runs.join(RUN_FILE).exists() {
        return Ok(runs.to_path_buf());
    }
    let (entries, _) = list_runs(runs)?;
    entries
        .into_iter()
        .rfind(|entry| suite.is_none_or(|name| entry.suite == name))
        .map(|entry| entry.path)
        .ok_or_else(|| RecordError::NoRun {
            path: runs.to_path_buf(),
        })
}

//! Finds and opens the run that a path of the command line names.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use dyno_record::{RunDir, StoredRun, latest_run};

/// Where runs are written and looked for by default.
pub const DEFAULT: &str = "runs";

/// Opens the run at `path`, or the latest of the runs below it. What a reader must know before the
/// figures, damage of the record and its withdrawal, is printed to stderr.
pub fn open(path: &Path) -> anyhow::Result<StoredRun> {
    Ok(open_at(path)?.1)
}

/// As [`open`], with the directory of the run.
pub fn open_at(path: &Path) -> anyhow::Result<(PathBuf, StoredRun)> {
    let dir = at(path)?;
    let stored = RunDir::open(&dir)?;
    // Printed before the figures, because a reader who has seen a figure has believed it.
    for warning in &stored.warnings {
        eprintln!("{warning}");
    }
    if let Some(withdrawal) = &stored.withdrawn {
        eprintln!(
            "dyno: {}: {}; WITHDRAWN.md in it says why",
            dir.display(),
            withdrawal.what.replacen("Withdrawn: ", "withdrawn: ", 1)
        );
    }
    Ok((dir, stored))
}

fn at(path: &Path) -> anyhow::Result<PathBuf> {
    existing(path)?;
    Ok(latest_run(path, None)?)
}

/// Checks that `path` is a directory, which a run and a directory of runs are.
pub fn existing(path: &Path) -> anyhow::Result<()> {
    if !path.exists() && path == Path::new(DEFAULT) {
        bail!(
            "there are no runs in ./runs yet; `dyno run wspr --tiny` makes one in about a minute"
        );
    }
    ensure!(
        path.exists(),
        "{}: no such file or directory",
        path.display()
    );
    ensure!(
        path.is_dir(),
        "{} is not a run: a run is a directory with run.json",
        path.display()
    );
    Ok(())
}

//! Which run a path of the command line means.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use dyno_record::latest_run;

/// Where runs are written and looked for unless the user says otherwise.
pub const DEFAULT: &str = "runs";

/// The run at `path`, or the latest of the runs below it.
pub fn at(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.exists() && path == Path::new(DEFAULT) {
        bail!("there are no runs in ./runs yet; `dyno run wspr --tiny` makes one in half a minute");
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
    Ok(latest_run(path, None)?)
}

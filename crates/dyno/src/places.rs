//! The directories that the program uses, after the XDG base directory specification.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Below this directory each peer has its own.
pub fn peers_root() -> anyhow::Result<PathBuf> {
    dyno_suite::peers_root().context("neither XDG_DATA_HOME nor HOME is set; set one of them")
}

/// Prepared data, scratch directories and known limits live below this, unless the user says
/// where.
pub fn cache(chosen: Option<&Path>) -> anyhow::Result<PathBuf> {
    match chosen {
        Some(dir) => std::path::absolute(dir).with_context(|| format!("{}", dir.display())),
        None => Ok(cache_home()?.join("dynolab")),
    }
}

/// The directory itself where it exists, or else the closest one above it that does: its disk is
/// the one that the directory would be made on.
pub fn existing(dir: &Path) -> &Path {
    let there = dir.ancestors().find(|above| above.is_dir());
    there.unwrap_or(Path::new("/"))
}

fn cache_home() -> anyhow::Result<PathBuf> {
    dyno_suite::user_directory("XDG_CACHE_HOME", ".cache")
        .context("neither XDG_CACHE_HOME nor HOME is set; set one of them")
}

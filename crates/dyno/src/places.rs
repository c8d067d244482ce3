//! The directories that the program uses, after the XDG base directory specification.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Below this directory each peer has its own.
pub fn peers_root() -> anyhow::Result<PathBuf> {
    Ok(base("XDG_DATA_HOME", ".local/share")?.join("dynolab/peers"))
}

/// Prepared data, scratch directories and known limits live below this, unless the user says
/// where.
pub fn cache(chosen: Option<&Path>) -> anyhow::Result<PathBuf> {
    match chosen {
        Some(dir) => std::path::absolute(dir).with_context(|| format!("{}", dir.display())),
        None => Ok(base("XDG_CACHE_HOME", ".cache")?.join("dynolab")),
    }
}

/// The directory itself where it exists, or else the closest one above it that does: its disk is
/// the one that the directory would be made on.
pub fn existing(dir: &Path) -> &Path {
    let there = dir.ancestors().find(|above| above.is_dir());
    there.unwrap_or(Path::new("/"))
}

fn base(variable: &str, below_home: &str) -> anyhow::Result<PathBuf> {
    // The specification says that relative paths are to be ignored.
    if let Some(dir) = env::var_os(variable)
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute())
    {
        return Ok(dir);
    }
    let home = env::var_os("HOME")
        .with_context(|| format!("neither {variable} nor HOME is set; set one of them"))?;
    Ok(Path::new(&home).join(below_home))
}

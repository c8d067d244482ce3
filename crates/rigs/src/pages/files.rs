//! Unnamed files in a tmpfs, for stores that must not touch a disk.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::PagesError;
use crate::strays::MEMORY;

/// A file of `bytes` in a tmpfs, without a name, so that it goes with this process.
pub(super) fn in_memory(bytes: u64) -> Result<File, PagesError> {
    let path = Path::new(MEMORY).join(format!("dynolab-pages-{}", std::process::id()));
    let failed = |e| PagesError::system(path.display().to_string(), e);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(failed)?;
    fs::remove_file(&path).map_err(failed)?;
    file.set_len(bytes).map_err(failed)?;
    Ok(file)
}

/// Bytes of memory that a file in a tmpfs occupies.
pub(super) fn held_bytes(file: &File) -> Result<u64, PagesError> {
    let facts = file
        .metadata()
        .map_err(|e| PagesError::system("a file in memory", e))?;
    Ok(facts.blocks() * 512)
}

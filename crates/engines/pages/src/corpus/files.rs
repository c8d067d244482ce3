//! Pages cut from the files below some folders.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::CorpusError;
use crate::PAGE_BYTES;

/// How deep folders are followed. Symbolic links are not followed at all, so there are no cycles.
const MOST_DEPTH: usize = 12;

/// Up to `pages` whole pages from the files below `folders` that `wanted` accepts, in the order of
/// their names. The files are joined, so that small ones give pages too; a folder that does not
/// exist gives nothing.
///
/// # Errors
/// When a file that is there cannot be read.
pub fn pages_of_files(
    folders: &[PathBuf],
    pages: usize,
    wanted: fn(&Path) -> bool,
) -> Result<Vec<u8>, CorpusError> {
    let room = pages * PAGE_BYTES;
    let mut bytes = Vec::new();
    for path in walk(folders)? {
        if bytes.len() >= room {
            break;
        }
        if !wanted(&path) {
            continue;
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => continue,
            Err(error) => return Err(CorpusError::read("open", &path, error)),
        };
        let left = (room - bytes.len()) as u64;
        file.take(left)
            .read_to_end(&mut bytes)
            .map_err(|error| CorpusError::read("read", &path, error))?;
    }
    bytes.truncate(bytes.len() / PAGE_BYTES * PAGE_BYTES);
    Ok(bytes)
}

/// The plain files below `folders`, sorted by name, so that the same machine gives the same pages.
pub fn walk(folders: &[PathBuf]) -> Result<Vec<PathBuf>, CorpusError> {
    let mut found = Vec::new();
    for folder in folders {
        let from = found.len();
        descend(folder, 0, &mut found)?;
        found[from..].sort();
    }
    Ok(found)
}

fn descend(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), CorpusError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            return Ok(());
        }
        Err(error) => return Err(CorpusError::read("list", folder, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| CorpusError::read("list", folder, error))?;
        let kind = entry
            .file_type()
            .map_err(|e| CorpusError::read("look at", &entry.path(), e))?;
        if kind.is_file() {
            found.push(entry.path());
        } else if kind.is_dir() && depth < MOST_DEPTH {
            descend(&entry.path(), depth + 1, found)?;
        }
    }
    Ok(())
}

fn ending(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or("")
}

pub fn is_source(path: &Path) -> bool {
    matches!(
        ending(path),
        "h" | "hpp" | "c" | "cpp" | "py" | "pm" | "pl" | "rs" | "go"
    )
}

pub fn is_document(path: &Path) -> bool {
    !matches!(
        ending(path),
        "gz" | "xz" | "bz2" | "zst" | "png" | "jpg" | "pdf" | "zip" | "svgz"
    )
}

/// Tables and indexes are named by their number, `base/16384/16385` or with `.1`, `_fsm` and `_vm`
/// behind; only the first two are pages of rows.
pub fn is_postgres(path: &Path) -> bool {
    let in_base = path.components().any(|c| c.as_os_str() == "base");
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("x");
    in_base && name.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

pub fn is_parquet(path: &Path) -> bool {
    ending(path) == "parquet"
}

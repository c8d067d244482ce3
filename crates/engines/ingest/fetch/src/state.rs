//! What is known of a file beside it: which version of it the server had.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A version of a file, as the server names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    /// Where it is from.
    pub(crate) url: String,
    /// Its entity tag.
    pub(crate) etag: Option<String>,
    /// When it was changed, in the server's words.
    pub(crate) last_modified: Option<String>,
    /// Its length in bytes, where the server says.
    pub(crate) bytes: Option<u64>,
}

impl Version {
    /// What proves that it is the same still: a strong tag or a date. Weak tags stand for files
    /// that only look the same (RFC 9110, 13.1.5).
    pub(crate) fn proof(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
        strong.or(self.last_modified.as_deref())
    }

    /// What was written of the version of the file at `path`; none where there is nothing that can
    /// be read.
    pub(crate) fn read(path: &Path, url: &str) -> Option<Version> {
        let text = fs::read(beside(path)).ok()?;
        let version: Version = serde_json::from_slice(&text).ok()?;
        (version.url == url).then_some(version)
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(beside(path), serde_json::to_vec(self)?)
    }

    pub(crate) fn forget(path: &Path) -> io::Result<()> {
        match fs::remove_file(beside(path)) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(beside(from), beside(to))
    }
}

/// A hidden file, so that patterns for archives do not match it.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.version"))
}

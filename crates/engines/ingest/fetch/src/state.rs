//! Remembers, in a file beside each download, which version of it the server had.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One version of a file, as the server identifies it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    /// The URL that it was requested from.
    pub(crate) url: String,
    /// The entity tag with its quotes, if the server sent one.
    pub(crate) etag: Option<String>,
    /// The value of `Last-Modified`, which is sent back as it is.
    pub(crate) last_modified: Option<String>,
    /// Length of the whole file in bytes, if the server states it.
    pub(crate) bytes: Option<u64>,
}

impl Version {
    /// The value for `If-Range`: a strong tag, or else a date. Weak tags may stand for files with
    /// other bytes (RFC 9110, section 13.1.5).
    pub(crate) fn proof(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
        strong.or(self.last_modified.as_deref())
    }

    /// Reads the version of the file at `path`. `None` if it is missing, cannot be read, or is from
    /// another URL.
    pub(crate) fn read(path: &Path, url: &str) -> Option<Version> {
        let text = fs::read(beside(path)).ok()?;
        let version: Version = serde_json::from_slice(&text).ok()?;
        // The tag of one server means nothing to another one.
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

//! Files that appear under their name only when they are complete.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::device::{Claim, Existing, FileSystem};
use crate::error::IoError;
use crate::{Durability, Output, Sink};

/// Writes under another name beside the final one, `.NAME.partial`, and renames the file when told
/// to [`publish`](Output::publish). Dropped without that, it removes what it wrote. The next
/// attempt overwrites what a killed process left.
///
/// After a crash of the machine the name has the complete bytes, or what it had before; once
/// `publish` has returned, it has the complete bytes.
#[derive(Debug)]
pub struct Staged {
    files: Arc<dyn FileSystem>,
    sink: Box<dyn Sink>,
    path: PathBuf,
    aside: PathBuf,
    existing: Existing,
    failed: bool,
    published: bool,
    /// The last field, because fields are dropped in order: the claim must last until the sink has
    /// closed its file.
    _claim: Claim,
}

impl Staged {
    /// Claims the name and opens the sink; `open` makes the sink at the temporary name that it is
    /// given.
    ///
    /// # Errors
    /// [`IoError::Exists`] at once when `path` exists and may not be replaced, [`IoError::Busy`]
    /// when another process writes it, the error of `open`, or the system's reason.
    pub fn create(
        files: Arc<dyn FileSystem>,
        path: &Path,
        existing: Existing,
        open: impl FnOnce(&Path) -> Result<Box<dyn Sink>, IoError>,
    ) -> Result<Self, IoError> {
        let aside = aside(path)?;
        if existing == Existing::Refuse && files.exists(path)? {
            return Err(IoError::Exists {
                path: path.to_path_buf(),
            });
        }
        // The claim comes before the sink, because opening the sink empties the file, which may be
        // another process's work.
        let claim = files.claim(&aside)?;
        let sink = match open(&aside) {
            Ok(sink) => sink,
            Err(error) => {
                // The error at hand says more than an error of this cleanup would.
                let _ = files.remove(&aside);
                return Err(error);
            }
        };
        Ok(Self {
            files,
            sink,
            path: path.to_path_buf(),
            aside,
            existing,
            failed: false,
            published: false,
            _claim: claim,
        })
    }

    /// The name that the file gets when it is published.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name that the file has until it is published.
    pub fn aside(&self) -> &Path {
        &self.aside
    }

    /// Runs `work`, unless an earlier call failed: a file with a gap must never get its final name,
    /// even if its writer overlooked the error.
    fn guarded<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Sink) -> Result<T, IoError>,
    ) -> Result<T, IoError> {
        if self.failed {
            return Err(IoError::Broken {
                path: self.path.clone(),
            });
        }
        let done = work(&mut *self.sink);
        self.failed = done.is_err();
        done
    }
}

impl Sink for Staged {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        self.guarded(|sink| sink.write(bytes))
    }

    fn written_bytes(&self) -> u64 {
        self.sink.written_bytes()
    }

    fn finish(&mut self, durability: Durability) -> Result<u64, IoError> {
        self.guarded(|sink| sink.finish(durability))
    }
}

impl Output for Staged {
    /// # Errors
    /// Besides those of `finish`, [`IoError::Exists`] when the name was taken meanwhile, or the
    /// error of the system. Then nothing has the name, unless only the directory could not be
    /// synced: in that case the complete file has it, and a crash of the machine may take it away
    /// again.
    fn publish(mut self: Box<Self>) -> Result<u64, IoError> {
        let written_bytes = self.finish(Durability::Stable)?;
        // The bytes are on stable storage before the name changes; in the other order a crash could
        // leave the final name with an incomplete file.
        self.files.rename(&self.aside, &self.path, self.existing)?;
        self.published = true;
        self.files.sync_directory(parent(&self.path))?;
        Ok(written_bytes)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published {
            // If it cannot be removed, it is the same as the leftover of a crash, which the next
            // attempt overwrites.
            let _ = self.files.remove(&self.aside);
        }
    }
}

fn aside(path: &Path) -> Result<PathBuf, IoError> {
    let Some(name) = path.file_name() else {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "it names no file");
        return Err(IoError::system("create", path, source));
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".partial");
    Ok(path.with_file_name(hidden))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

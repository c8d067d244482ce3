//! Notices that a file changed while it was read.
//!
//! An archive is loaded whole or not at all, so a file that is cut or overwritten while it is read
//! must not count as read: its end looks like the end of the archive. The checksums of a compressed
//! file show that. Plain text and Parquet have none, so the file's metadata is compared before and
//! after.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The metadata of a file when it was opened.
pub struct Witness {
    path: PathBuf,
    file: File,
    opened: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds of the last change of its contents.
    modified: (i64, i64),
}

impl State {
    fn from_metadata(metadata: &Metadata) -> State {
        State {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl Witness {
    /// Reads the file's metadata before any of its contents are read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(path: &Path, file: &File) -> Result<Witness> {
        let failed = |e| Error::io("open", path, e);
        let file = file.try_clone().map_err(failed)?;
        let opened = State::from_metadata(&file.metadata().map_err(failed)?);
        Ok(Witness {
            path: path.to_owned(),
            file,
            opened,
        })
    }

    /// Checks a file that was read once through one descriptor, to its end after `read` bytes. A
    /// file that grows is accepted as far as it was read, because its next load sees other bytes
    /// and replaces this one.
    ///
    /// # Errors
    /// [`Error::Input`] when it became shorter, or was overwritten in place.
    pub fn read_to_end(&self, read: u64) -> Result<()> {
        // The descriptor is asked and not the path: a file that was replaced under its name is
        // still whole to the reader that has it open.
        let now = self.file.metadata();
        let now = State::from_metadata(&now.map_err(|e| Error::io("read", &self.path, e))?);
        if read < self.opened.bytes || now.bytes < read {
            let had = self.opened.bytes.max(read);
            return Err(self.changed(
                read.min(now.bytes),
                format!(
                    "the file became shorter while it was read: it had {had} bytes and has {} now",
                    now.bytes
                ),
            ));
        }
        // The time of a longer file says nothing about the part that was read, because appending
        // changes it, too.
        if now.bytes == self.opened.bytes && now.modified != self.opened.modified {
            return Err(self.changed(read, "the file was changed while it was read".to_owned()));
        }
        Ok(())
    }

    /// Checks a file that was opened several times by its name: it must be the same file with the
    /// same contents.
    ///
    /// # Errors
    /// [`Error::Input`] when it is not.
    pub fn unchanged(&self) -> Result<()> {
        // Each pass opens the file by its name, so here the path is asked, and another inode is
        // another file.
        let now = std::fs::metadata(&self.path);
        let now = State::from_metadata(&now.map_err(|e| Error::io("read", &self.path, e))?);
        if now == self.opened {
            Ok(())
        } else {
            Err(self.changed(0, "the file was changed while it was read".to_owned()))
        }
    }

    fn changed(&self, offset: u64, reason: String) -> Error {
        Error::Input {
            path: self.path.clone(),
            offset,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs::OpenOptions;
    use std::io::Write;
    use std::time::{Duration, UNIX_EPOCH};

    /// A file of ten bytes that was changed long ago, so that every later change shows in its time.
    fn file(folder: &Path) -> (PathBuf, Witness) {
        let path = folder.join("spots.csv");
        std::fs::write(&path, "0123456789").unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        file.set_modified(long_ago).unwrap();
        let witness = Witness::new(&path, &File::open(&path).unwrap()).unwrap();
        (path, witness)
    }

    #[test]
    fn a_file_that_shrinks_or_changes_in_place_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, witness) = file(folder.path());
        witness.read_to_end(10).unwrap();
        witness.unchanged().unwrap();

        let shorter = witness.read_to_end(4).unwrap_err().to_string();
        assert!(shorter.contains("became shorter"), "{shorter}");

        std::fs::write(&path, "9876543210").unwrap();
        let changed = witness.read_to_end(10).unwrap_err().to_string();
        assert!(changed.contains("was changed while"), "{changed}");
        witness.unchanged().unwrap_err();

        File::create(&path).unwrap();
        let cut = witness.read_to_end(10).unwrap_err().to_string();
        assert!(cut.contains("it had 10 bytes and has 0 now"), "{cut}");
    }

    #[test]
    fn a_file_that_grows_is_accepted_as_far_as_it_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let (path, witness) = file(folder.path());
        let mut end = OpenOptions::new().append(true).open(&path).unwrap();
        end.write_all(b"more").unwrap();
        witness.read_to_end(10).unwrap();
        witness.read_to_end(14).unwrap();
        witness.unchanged().unwrap_err();
    }

    #[test]
    fn a_replaced_file_is_still_whole_to_the_reader_that_has_it_open() {
        let folder = tempfile::tempdir().unwrap();
        let (path, witness) = file(folder.path());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "0123456789").unwrap();
        witness.read_to_end(10).unwrap();
        witness.unchanged().unwrap_err();
    }
}

//! Advisory locks on the table's directory, and making the directory durable.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::{Error, Result};

/// A lock that is released when the value is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would not be enough: a program that this process is just starting on
        // another thread has a copy of the descriptor until it begins, and with it the lock. If
        // unlocking fails, closing the file is all that is left.
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Takes the exclusive lock of the one writer.
    pub(super) fn writer(table: &Path) -> Result<Lock> {
        // The kernel releases the lock when the process dies, however that happens. The file itself
        // is never removed: otherwise two writers could each lock a file of this name.
        let path = table.join("writer.lock");
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { file }),
            Err(std::fs::TryLockError::WouldBlock) => Err(Error::Locked {
                table: table.to_owned(),
            }),
            Err(std::fs::TryLockError::Error(e)) => Err(Error::io("lock", &path, e)),
        }
    }

    /// Takes the shared lock that every reader holds while it may open files of its snapshot.
    pub(super) fn reader(table: &Path) -> Result<Lock> {
        let path = table.join("readers.lock");
        // A shared lock needs only read access, so every user that may read the table can take it.
        let file = match File::open(&path).or_else(|_| writable(&path)) {
            Ok(file) => file,
            // A table on a read-only mount cannot be written by any process, so it needs no lock.
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => {
                File::open(table).map_err(|e| Error::io("open", table, e))?
            }
            Err(e) => return Err(Error::io("open", &path, e)),
        };
        file.lock_shared()
            .map_err(|e| Error::io("lock", &path, e))?;
        Ok(Lock { file })
    }

    /// Takes the lock under which old files are removed; `None` if a reader may still need them.
    pub(super) fn no_readers(table: &Path) -> Result<Option<Lock>> {
        let path = table.join("readers.lock");
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { file })),
            // A reader may stay open for hours. It is not waited for, because files that are
            // removed late only cost space.
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(e)) => Err(Error::io("lock", &path, e)),
        }
    }
}

fn open(path: &Path) -> Result<File> {
    writable(path).map_err(|e| Error::io("open", path, e))
}

fn writable(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)
}

/// Makes renames and new entries in `directory` survive a power cut.
///
/// # Errors
/// [`Error::Io`].
pub fn sync_directory(directory: &Path) -> Result<()> {
    let file = File::open(directory).map_err(|e| Error::io("open", directory, e))?;
    file.sync_all().map_err(|e| Error::io("sync", directory, e))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let table = tempfile::tempdir().unwrap();
        let lock = Lock::writer(table.path()).unwrap();
        let _copy = lock.file.try_clone().unwrap();
        assert!(matches!(
            Lock::writer(table.path()),
            Err(Error::Locked { .. })
        ));
        drop(lock);
        Lock::writer(table.path()).unwrap();
    }
}

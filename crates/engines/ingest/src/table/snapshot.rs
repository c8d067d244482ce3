//! A reader's view: one committed state, whose files stay while it is open.

use std::path::{Path, PathBuf};

use super::lock::Lock;
use super::{Damage, DataFile, Manifest};
use crate::{Error, Result};

/// One committed state of a table. While it exists no writer removes its files.
#[derive(Debug)]
pub struct Snapshot {
    table: PathBuf,
    manifest: Manifest,
    _lock: Lock,
}

impl Snapshot {
    /// Opens the newest committed state of the table in `table`.
    ///
    /// # Errors
    /// [`Error::NoTable`] when nothing was committed there, [`Error::Manifest`] when the manifest
    /// cannot be read or is newer than this program.
    pub fn open(table: &Path) -> Result<Snapshot> {
        if !table.is_dir() {
            return Err(Error::NoTable {
                table: table.to_owned(),
            });
        }
        // The lock is taken first, because a manifest read before it could name files already
        // removed.
        let lock = Lock::reader(table)?;
        let manifest = Manifest::read(table)?.ok_or_else(|| Error::NoTable {
            table: table.to_owned(),
        })?;
        Ok(Snapshot {
            table: table.to_owned(),
            manifest,
            _lock: lock,
        })
    }

    /// The manifest that was current when the snapshot was opened.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The directory of the table.
    pub fn table(&self) -> &Path {
        &self.table
    }

    /// The data files that differ from what this state says.
    pub fn damage(&self) -> Vec<Damage> {
        self.manifest.damage(&self.table)
    }

    /// The data files of one feed with their full paths, archive by archive.
    pub fn files_of(&self, feed: &str) -> impl Iterator<Item = (PathBuf, &DataFile)> {
        self.manifest
            .files_of(feed)
            .map(|file| (self.table.join(&file.path), file))
    }

    /// Its data files with their full paths, archive by archive.
    pub fn files(&self) -> impl Iterator<Item = (PathBuf, &DataFile)> {
        self.manifest
            .files()
            .map(|file| (self.table.join(&file.path), file))
    }
}

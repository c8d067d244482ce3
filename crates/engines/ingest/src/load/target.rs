//! The target of a load: what a directory and a database have in common.

use std::path::{Path, PathBuf};

use super::report::{ServerReport, StageSeconds};
use crate::scan::BadRow;
use crate::source::hash_file;
use crate::table::{Archive, SourceIdentity};
use crate::{Error, Result};

/// Rows by column, which a reader fills and a table stores as one row group or as a few blocks.
/// Strings are codes into dictionaries that outlive the rows.
pub trait Chunk {
    /// Bytes of memory that a worker needs at least, if [`Opening::each_bytes`] is `each`.
    fn least_bytes(each: usize) -> usize;

    /// The greatest [`Chunk::size`] for a worker that has `bytes` of memory.
    fn most(bytes: usize, each: usize) -> usize;

    /// The number of rows.
    fn rows(&self) -> usize;

    /// How large it is, in the unit that [`Opening::each_bytes`] refers to: rows if all are of one
    /// size, otherwise bytes.
    fn size(&self) -> usize;

    /// Unix seconds of the earliest and the latest row; `None` if no row has a time.
    fn times_s(&self) -> Option<(i64, i64)>;

    /// Bytes of the dictionaries as pages hold them, and bytes of memory that they use.
    fn dictionary_bytes(&self) -> (usize, usize);

    /// Removes the rows and keeps the dictionaries.
    fn clear(&mut self);

    /// Empties the dictionaries. There must be no rows, because their codes would mean nothing.
    fn clear_dictionaries(&mut self);
}

/// How to open a table for chunks of the type `C`, once the inputs are known to be good.
pub struct Opening<'a, C> {
    /// Bytes of memory for each unit of a chunk's size: its columns, and everything made from them
    /// until they have left the process.
    pub each_bytes: usize,
    /// Opens the table for writing.
    pub open: Box<dyn FnOnce() -> Result<Box<dyn Target<C> + 'a>> + 'a>,
}

/// A table that archives are loaded into, each whole or not at all. Workers share it. Rows come in
/// chunks of the type `C`.
pub trait Target<C>: Sync {
    /// What the table has of `archive`, if all of it is intact.
    ///
    /// # Errors
    /// When the table cannot be asked.
    fn stored(&self, archive: &str) -> Result<Option<StoredArchive>>;

    /// Opens a stage for the rows of `archive`, which are read from `source`.
    ///
    /// # Errors
    /// If there is no room for them, or no permission.
    fn stage<'a>(&'a self, archive: &str, source: &Path) -> Result<Box<dyn Stage<C> + 'a>>;

    /// Ends the load and removes what was staged but not committed.
    ///
    /// # Errors
    /// When that fails; what was committed stays.
    fn finish(&self) -> Result<()>;
}

/// What a table has of one archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArchive {
    /// Length of the source as stored.
    pub bytes: u64,
    /// XXH3-128 of the source as stored, 32 hex digits.
    pub hash: String,
    /// Good rows in the table.
    pub rows: u64,
}

impl StoredArchive {
    /// Describes an archive of a directory.
    pub fn from_archive(archive: &Archive) -> StoredArchive {
        StoredArchive {
            bytes: archive.source.bytes,
            hash: archive.source.hash.clone(),
            rows: archive.rows,
        }
    }

    /// Its rows, if they came from these very bytes.
    pub fn rows_of(&self, bytes: u64, hash: &str) -> Option<u64> {
        (self.bytes == bytes && self.hash == hash).then_some(self.rows)
    }

    /// Its rows, if they came from this very file. A file of another length is not read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn rows_of_file(&self, path: &Path) -> Result<Option<u64>> {
        let meta = std::fs::metadata(path).map_err(|e| Error::io("open", path, e))?;
        if self.bytes != meta.len() {
            return Ok(None);
        }
        let (bytes, hash) = hash_file(path)?;
        Ok(self.rows_of(bytes, &hash))
    }
}

/// One archive that is being loaded. Dropped without a commit, it leaves the table as it was.
pub trait Stage<C> {
    /// Accepts a chunk of rows and returns how many are good for this table; the others went to
    /// quarantine. Codes mean the same in all chunks until the dictionaries are cleared.
    ///
    /// # Errors
    /// When they cannot be stored; the archive has failed then.
    fn append(&mut self, rows: &C, stages: &mut StageSeconds) -> Result<u64>;

    /// Puts a bad row into quarantine. An error in storing it is returned by [`Stage::commit`].
    fn put_aside(&mut self, row: &BadRow<'_>);

    /// Rows put into quarantine so far.
    fn bad_rows(&self) -> u64;

    /// Keeps the bad rows of an archive that is refused because of them, and returns where they
    /// are.
    ///
    /// # Errors
    /// When they cannot be kept.
    fn reject(self: Box<Self>) -> Result<PathBuf>;

    /// Puts the archive into the table in place of what the table had of it.
    ///
    /// # Errors
    /// When that fails. The table is then as it was, unless the acknowledgement of a server was
    /// lost: then the commit may have taken effect.
    fn commit(
        self: Box<Self>,
        source: SourceIdentity,
        stages: &mut StageSeconds,
    ) -> Result<Committed>;
}

/// What a table had of an archive before a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// The table had nothing of the archive.
    Nothing,
    /// An earlier load of it, which the new one replaced.
    Earlier,
    /// An earlier load whose data files were missing or cut, which this load repaired.
    Damaged,
}

/// The result of a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// Rows that were put into the table.
    pub rows: u64,
    /// Bytes that the rows take in the table.
    pub table_bytes: u64,
    /// What the table had of the archive before.
    pub before: Before,
    /// Statistics of a database target; `None` for a directory.
    pub server: Option<ServerReport>,
}

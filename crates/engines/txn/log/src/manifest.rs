//! The manifest: one block that says where the log begins. A rename replaces it as a whole.

use std::path::{Path, PathBuf};

use dyno_io::{Access, AlignedBuffer, Caching, Existing, Opening, Storage, Syncing, write_whole};

use crate::error::LogError;
use crate::position::{BLOCK_BYTES, Lsn, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"DYNOTXNM";
/// The format version of all files of a log.
pub(crate) const VERSION: u32 = 1;
const NAME: &str = "manifest";
const ASIDE: &str = "manifest.partial";

/// The contents of the manifest. docs/formats/txn-log.md has the table of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub identity: u64,
    /// Grows with each opening. Groups from `epoch_start` on must have this epoch.
    pub epoch: u64,
    pub epoch_start: Lsn,
    /// Everything before this position was durable when the manifest was written.
    pub proven: Lsn,
    pub segment_bytes: u64,
    /// Recovery needs the records from here on.
    pub first_needed: Lsn,
    /// The number of the current checkpoint, or 0 if there is none.
    pub checkpoint: u64,
    pub checkpoint_chunks: u64,
    pub checkpoint_bytes: u64,
    /// Files of segments that were made, numbered from 0. All of them must exist: recovery ends a
    /// log where it finds no further group, so without this number a deleted last file would look
    /// like an earlier end. Manifests of earlier versions have 0, which means unknown.
    pub files: u64,
}

impl Manifest {
    fn fields(&self) -> [u64; 10] {
        [
            self.identity,
            self.epoch,
            self.epoch_start.0,
            self.proven.0,
            self.segment_bytes,
            self.first_needed.0,
            self.checkpoint,
            self.checkpoint_chunks,
            self.checkpoint_bytes,
            self.files,
        ]
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; BLOCK_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        for (at, field) in self.fields().iter().enumerate() {
            bytes[16 + 8 * at..24 + 8 * at].copy_from_slice(&field.to_le_bytes());
        }
        let crc = dyno_checksum::crc32c(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(path: &Path, bytes: &[u8]) -> Result<Self, LogError> {
        check_front(path, bytes, MAGIC)?;
        let field = |at: usize| u64_at(bytes, 16 + 8 * at);
        let manifest = Self {
            identity: field(0),
            epoch: field(1),
            epoch_start: Lsn(field(2)),
            proven: Lsn(field(3)),
            segment_bytes: field(4),
            first_needed: Lsn(field(5)),
            checkpoint: field(6),
            checkpoint_chunks: field(7),
            checkpoint_bytes: field(8),
            files: field(9),
        };
        if !segment_bytes_work(manifest.segment_bytes) {
            return Err(LogError::damaged(path, 48, "no length of a segment"));
        }
        Ok(manifest)
    }

    /// Loads the manifest of a directory, if it has one.
    pub fn load(storage: &dyn Storage, directory: &Path) -> Result<Option<Self>, LogError> {
        let path = directory.join(NAME);
        if !storage.exists(&path)? {
            return Ok(None);
        }
        let file = storage.open(&path, cached(Access::Read))?;
        // One byte more than a manifest has, so that a longer file is refused.
        let mut bytes = vec![0u8; BLOCK_BYTES + 1];
        let filled = file.read_at(0, &mut bytes)?;
        if filled != BLOCK_BYTES {
            let what = format!("a manifest of {filled} bytes");
            return Err(LogError::damaged(&path, filled as u64, what));
        }
        Self::decode(&path, &bytes[..filled]).map(Some)
    }

    /// Replaces the manifest. A crash leaves the old one or the new one. After an error either may
    /// be current, because the rename may have happened before the directory failed to sync.
    pub fn store(&self, storage: &dyn Storage, directory: &Path) -> Result<(), LogError> {
        let aside = directory.join(ASIDE);
        let file = storage.open(&aside, cached(Access::Create))?;
        write_whole(&*file, 0, &self.encode())?;
        // Before the rename, or a crash could leave the name with a file that has no bytes.
        file.sync()?;
        storage.rename(&aside, &directory.join(NAME), Existing::Replace)?;
        Ok(storage.sync_directory(directory)?)
    }

    pub fn checkpoint_path(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{CHECKPOINT_PREFIX}{number:06}"))
    }
}

pub(crate) const CHECKPOINT_PREFIX: &str = "checkpoint-";

/// Checks magic, version and checksum at the front of a block. The checksum covers the rest.
pub(crate) fn check_front(path: &Path, block: &[u8], magic: &[u8; 8]) -> Result<(), LogError> {
    if block.len() < 16 || &block[..8] != magic {
        return Err(LogError::damaged(
            path,
            0,
            "its first bytes are not the log's",
        ));
    }
    // The version comes before the checksum, because a newer format may compute that differently.
    let found = u32_at(block, 8);
    if found > VERSION {
        return Err(LogError::NewerVersion {
            path: path.to_path_buf(),
            found,
            known: VERSION,
        });
    }
    if found == 0 || dyno_checksum::crc32c(&block[16..]) != u32_at(block, 12) {
        return Err(LogError::damaged(path, 0, "its checksum is wrong"));
    }
    Ok(())
}

/// Whether segments may have this length: 64 KiB to 1 GiB, in whole blocks.
pub(crate) fn segment_bytes_work(segment_bytes: u64) -> bool {
    (64 << 10..=1 << 30).contains(&segment_bytes)
        && segment_bytes.is_multiple_of(BLOCK_BYTES as u64)
}

pub(crate) fn cached(access: Access) -> Opening {
    Opening {
        access,
        caching: Caching::Cached,
        syncing: Syncing::AtSync,
    }
}

/// Opens a file with O_DIRECT, or through the page cache where the file system refuses that.
pub(crate) fn open_direct(
    storage: &dyn Storage,
    path: &Path,
    access: Access,
    syncing: Syncing,
) -> Result<Box<dyn dyno_io::Blocks>, LogError> {
    let opening = Opening {
        access,
        caching: Caching::Direct,
        syncing,
    };
    match storage.open(path, opening) {
        Err(dyno_io::IoError::DirectRefused { .. }) => {
            let caching = Caching::Cached;
            Ok(storage.open(path, Opening { caching, ..opening })?)
        }
        opened => Ok(opened?),
    }
}

/// Fills `buffer` from `offset` on. Returns how many bytes the file had. It reads in pieces because
/// a kernel may cut one very long read short, which would look like the end of the file.
pub(crate) fn read_into(
    file: &dyn dyno_io::Blocks,
    offset: u64,
    buffer: &mut AlignedBuffer,
) -> Result<usize, LogError> {
    const PIECE_BYTES: usize = 4 << 20;
    let mut filled = 0;
    while filled < buffer.len() {
        let end = (filled + PIECE_BYTES).min(buffer.len());
        let got = file.read_at(offset + filled as u64, &mut buffer[filled..end])?;
        filled += got;
        if filled < end {
            break;
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            identity: 1,
            epoch: 2,
            epoch_start: Lsn(3),
            proven: Lsn(4),
            segment_bytes: 64 << 10,
            first_needed: Lsn(5),
            checkpoint: 6,
            checkpoint_chunks: 7,
            checkpoint_bytes: 8,
            files: 9,
        }
    }

    #[test]
    fn it_comes_back_and_damage_is_found() {
        let path = Path::new("manifest");
        let bytes = manifest().encode();
        assert_eq!(Manifest::decode(path, &bytes).expect("whole"), manifest());
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 4;
            assert!(Manifest::decode(path, &bad).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_newer_one_is_refused_by_name() {
        let mut bytes = manifest().encode();
        bytes[8] = 2;
        let refused = Manifest::decode(Path::new("manifest"), &bytes).expect_err("newer");
        assert!(matches!(refused, LogError::NewerVersion { found: 2, .. }));
    }
}

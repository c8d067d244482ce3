//! The manifest: one block that says where the log begins. It is replaced whole, by a rename.

use std::path::{Path, PathBuf};

use dyno_io::{Access, AlignedBuffer, Caching, Existing, Opening, Storage, Syncing, write_whole};

use crate::error::LogError;
use crate::position::{BLOCK_BYTES, Lsn, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"DYNOTXNM";
/// Of all files of a log.
pub(crate) const VERSION: u32 = 1;
const NAME: &str = "manifest";
const ASIDE: &str = "manifest.partial";

/// What the manifest says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub identity: u64,
    /// Grows with each opening; groups from `epoch_start` on must have this one.
    pub epoch: u64,
    pub epoch_start: Lsn,
    /// All before it was durable when the manifest was written.
    pub proven: Lsn,
    pub segment_bytes: u64,
    /// Recovery needs the records from here on.
    pub first_needed: Lsn,
    /// 0: none.
    pub checkpoint: u64,
    pub checkpoint_chunks: u64,
    pub checkpoint_bytes: u64,
    /// Files of segments that were made, numbered from 0: all of them must be there. A killed log
    /// ends where no further group is found, so without this number it would end early where its
    /// last file was deleted. 0: not known, as in manifests of earlier versions.
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

    /// The manifest of a directory, if it has one.
    pub fn load(storage: &dyn Storage, directory: &Path) -> Result<Option<Self>, LogError> {
        let path = directory.join(NAME);
        if !storage.exists(&path)? {
            return Ok(None);
        }
        let file = storage.open(&path, cached(Access::Read))?;
        // One byte more than there may be shows a longer file.
        let mut bytes = vec![0u8; BLOCK_BYTES + 1];
        let filled = file.read_at(0, &mut bytes)?;
        if filled != BLOCK_BYTES {
            let what = format!("a manifest of {filled} bytes");
            return Err(LogError::damaged(&path, filled as u64, what));
        }
        Self::decode(&path, &bytes[..filled]).map(Some)
    }

    /// Puts this manifest in place of the one that is there, at once and whole.
    pub fn store(&self, storage: &dyn Storage, directory: &Path) -> Result<(), LogError> {
        let aside = directory.join(ASIDE);
        let file = storage.open(&aside, cached(Access::Create))?;
        write_whole(&*file, 0, &self.encode())?;
        file.sync()?;
        storage.rename(&aside, &directory.join(NAME), Existing::Replace)?;
        Ok(storage.sync_directory(directory)?)
    }

    pub fn checkpoint_path(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{CHECKPOINT_PREFIX}{number:06}"))
    }
}

pub(crate) const CHECKPOINT_PREFIX: &str = "checkpoint-";

/// Magic, version and checksum of a block whose rest the checksum covers.
pub(crate) fn check_front(path: &Path, block: &[u8], magic: &[u8; 8]) -> Result<(), LogError> {
    if block.len() < 16 || &block[..8] != magic {
        return Err(LogError::damaged(
            path,
            0,
            "its first bytes are not the log's",
        ));
    }
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

/// From 64 KiB to 1 GiB, in whole blocks.
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

/// Opens a file past the page cache, or through it where the file system has no other way.
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

/// Fills `buffer` from `offset` on, in pieces that every system reads at once. Returns how much.
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

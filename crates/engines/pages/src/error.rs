//! What can go wrong in a store.

use std::io;

use dyno_codec::lz4::BlockError;
use dyno_codec::zstd::ZstdError;
use dyno_io::IoError;

/// Why a call failed. The store goes on working after each of these.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The memory limit is reached: discard pages, recompress, compact or write back, then try
    /// again.
    #[error(
        "no space: a slot of {needed_bytes} bytes is not free under the limit of {limit_bytes} bytes"
    )]
    NoSpace {
        /// What the page needs.
        needed_bytes: usize,
        /// The limit the store was made with.
        limit_bytes: u64,
    },
    /// There is no such page.
    #[error("page {page} is out of range: the store has {pages}")]
    OutOfRange {
        /// The page asked for.
        page: u64,
        /// How many there are.
        pages: u64,
    },
    /// The bytes of a page are not those that were written. They are not handed out.
    #[error("page {page} is corrupt: {what}")]
    Corrupt {
        /// Which page.
        page: u64,
        /// How it was noticed.
        what: Damage,
    },
    /// What was opened is not a store, or one of a later version.
    #[error("not a store of compressed pages: {0}")]
    Format(String),
    /// Another store, here or in another process, uses the memory.
    #[error("the memory is in use by another store or process")]
    InUse,
    /// A size that the store cannot have.
    #[error("{0}")]
    Settings(String),
    /// The system refused memory.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The file for pages that left memory.
    #[error(transparent)]
    File(#[from] IoError),
    /// There is no such file, and a page or a call needs it.
    #[error("the store has no file to write pages back to")]
    NoFile,
    /// The C library has no memory for a context.
    #[error(transparent)]
    Zstd(#[from] ZstdError),
}

/// How damage was noticed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The page came out with another checksum.
    #[error("checksum is {computed:08x}, {stored:08x} was stored")]
    Checksum {
        /// Of what came out.
        computed: u32,
        /// Stored when it was written.
        stored: u32,
    },
    /// The LZ4 block cannot be decoded.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The zstd frame cannot be decoded.
    #[error(transparent)]
    Frame(#[from] ZstdError),
    /// The index has bits that no entry has, or points where no slot is.
    #[error("its index entry {entry:#018x} is not valid, or does not point at a slot")]
    Entry {
        /// The entry.
        entry: u64,
    },
    /// The form of a repeated word is not one.
    #[error("its repeated word has {len} bytes")]
    Word {
        /// The form's length.
        len: usize,
    },
    /// Two entries of the index point at one slot.
    #[error("its slot belongs to another page as well")]
    Shared,
    /// Its entry is locked, and no thread has locked it.
    #[error("its index entry is locked, and no thread of this process has locked it")]
    Lock,
    /// The file ends before it.
    #[error("the file ends before it")]
    File,
}

impl StoreError {
    /// The number that a block device or a C interface answers with.
    pub fn errno(&self) -> i32 {
        match self {
            Self::NoSpace { .. } => libc::ENOSPC,
            Self::OutOfRange { .. } | Self::Settings(_) | Self::Format(_) => libc::EINVAL,
            Self::InUse => libc::EBUSY,
            Self::Corrupt { .. } | Self::File(_) | Self::NoFile => libc::EIO,
            Self::System { .. } | Self::Zstd(_) => libc::ENOMEM,
        }
    }

    pub(crate) fn system(what: &'static str) -> Self {
        Self::System {
            what,
            source: io::Error::last_os_error(),
        }
    }
}

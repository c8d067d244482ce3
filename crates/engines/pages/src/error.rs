//! The errors of a store, and the kinds of damage it detects.

use std::io;

use dyno_codec::dictionary::FormError;
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
        /// Bytes of the form to be stored, its checksum included.
        needed_bytes: usize,
        /// The limit that the store was made with.
        limit_bytes: u64,
    },
    /// The page number is not below the number of pages.
    #[error("page {page} is out of range: the store has {pages}")]
    OutOfRange {
        /// The number that was asked for, counted from 0.
        page: u64,
        /// Pages that the store can hold.
        pages: u64,
    },
    /// The bytes of a page are not those that were written. They are not handed out.
    #[error("page {page} is corrupt: {what}")]
    Corrupt {
        /// Number of the damaged page.
        page: u64,
        /// Which check failed.
        what: Damage,
    },
    /// What was opened is not a store, or is one of a later version.
    #[error("not a store of compressed pages: {0}")]
    Format(String),
    /// Another store, in this process or another one, has the memory locked.
    #[error("the memory is in use by another store or process")]
    InUse,
    /// A setting is outside the range that a store can have; the text names it.
    #[error("{0}")]
    Settings(String),
    /// A call to the operating system failed, mostly for want of memory.
    #[error("{what}: {source}")]
    System {
        /// The action that failed, as it stands in the message.
        what: &'static str,
        /// The error number of the system.
        source: io::Error,
    },
    /// The backing file could not be opened, read or written.
    #[error(transparent)]
    File(#[from] IoError),
    /// The store has no backing file, and a page or a call needs one.
    #[error("the store has no file to write pages back to")]
    NoFile,
    /// The C library could not allocate a compression or decompression context.
    #[error(transparent)]
    Zstd(#[from] ZstdError),
}

/// The check by which damage was detected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The page decodes, but to bytes with another checksum than the one stored with it.
    #[error("checksum is {computed:08x}, {stored:08x} was stored")]
    Checksum {
        /// CRC32C of the bytes that were decoded, bound to the page number.
        computed: u32,
        /// The sum that was stored when the page was written.
        stored: u32,
    },
    /// The LZ4 block cannot be decoded.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The zstd frame cannot be decoded.
    #[error(transparent)]
    Frame(#[from] ZstdError),
    /// The index entry has bits that no entry has, or points outside the slots.
    #[error("its index entry {entry:#018x} is not valid, or does not point at a slot")]
    Entry {
        /// The entry as it was found, without its lock bit.
        entry: u64,
    },
    /// The form of a page that repeats one word is not eight bytes long.
    #[error("its repeated word has {len} bytes")]
    Word {
        /// Bytes of the form as found.
        len: usize,
    },
    /// The form that was made with the store's dictionary cannot be decoded.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The page was packed with the store's dictionary, and that is damaged or missing.
    #[error("the dictionary that it was packed with is damaged or missing")]
    Dictionary,
    /// Two entries of the index point at one slot, in a store whose pages do not share slots.
    #[error("its slot belongs to another page as well")]
    Shared,
    /// The lock bit of its entry is set, and no thread of this process holds that lock.
    #[error("its index entry is locked, and no thread of this process has locked it")]
    Lock,
    /// The backing file ends before the page.
    #[error("the file ends before it")]
    File,
}

impl StoreError {
    /// The error number that a block device or a C interface returns for this error.
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

//! The page store's workloads: codecs on pages, the store beside the kernel's zram and a file
//! system in memory, on the same pages in the same order, and restores of microVMs.

mod codec;
mod corpus;
mod device;
mod fault;
mod files;
mod fio;
mod own;
mod passes;
mod plain_pager;
mod repetition;
mod restore;
mod source;
mod space;
mod store;
mod system;
mod zram;

use std::io;

use dyno_codec::lz4::BlockError;
use dyno_codec::zstd::ZstdError;
use dyno_pages::corpus::CorpusError;
use dyno_pages::{PAGE_BYTES, StoreError};

pub(crate) use codec::codec;
pub(crate) use corpus::corpus;
pub(crate) use device::device;
pub(crate) use fault::fault;
pub(crate) use restore::{PAGE_CACHE, PLAIN_PAGER, restore, restore_missing};
pub(crate) use space::space;
pub(crate) use store::store;
pub use zram::missing as zram_missing;

/// Removes devices of rigs that were killed before they could do it.
pub(crate) fn remove_strays() {
    own::detach_strays();
    zram::remove_strays();
}

/// Why a workload on pages failed.
#[derive(Debug, thiserror::Error)]
pub enum PagesError {
    /// The page store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A class of pages cannot be made here.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// A block cannot be decoded.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A frame cannot be decoded.
    #[error(transparent)]
    Frame(#[from] ZstdError),
    /// The operating system refused an operation.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed, in words.
        what: String,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// A page that was read back differs from what was written.
    #[error("{0}")]
    Wrong(String),
    /// This machine lacks something that the case needs.
    #[error("{0}")]
    Refused(String),
    /// A worker thread panicked, so its part of the result is missing.
    #[error("a thread of the load panicked")]
    Panicked,
}

impl From<PagesError> for crate::RigError {
    fn from(error: PagesError) -> crate::RigError {
        crate::RigError::Workload(error.into())
    }
}

impl PagesError {
    fn system(what: impl Into<String>, source: io::Error) -> PagesError {
        let what = what.into();
        PagesError::System { what, source }
    }
}

fn bytes_of(pages: u64) -> u64 {
    pages * PAGE_BYTES as u64
}

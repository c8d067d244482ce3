//! The page store's workloads: codecs on pages, and the store beside the kernel's zram and a file
//! system in memory, on the same pages in the same order.

mod codec;
mod corpus;
mod device;
mod fault;
mod files;
mod fio;
mod passes;
mod place;
mod repetition;
mod source;
mod space;
mod store;
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
pub(crate) use space::space;
pub(crate) use store::store;
pub use zram::missing as zram_missing;

/// Why a workload on pages failed.
#[derive(Debug, thiserror::Error)]
pub enum PagesError {
    /// The store said no.
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
    /// The system said no.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// What came back is not what was written.
    #[error("{0}")]
    Wrong(String),
    /// It cannot be done here.
    #[error("{0}")]
    Refused(String),
    /// A thread panicked.
    #[error("a thread of the load panicked")]
    Panicked,
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

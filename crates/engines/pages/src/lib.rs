//! A store of compressed pages in memory, and the corpora that it is measured on.
//!
//! What it is: [`Store`], which takes pages of 4 KiB, keeps them compressed in a file in memory
//! that can outlive the process, and gives them back; [`corpus`], pages of known classes, either
//! generated or taken from this machine. What it is not: a device. The fronts (a memory region,
//! NBD, ublk, FUSE) are crates of their own that use this library.
//!
//! ```
//! use dyno_pages::{PAGE_BYTES, Settings, Store};
//!
//! let store = Store::create(Settings::new(1000, 1 << 20))?;
//! let mut handle = store.handle()?;
//! handle.write(7, &[42; PAGE_BYTES])?;
//! let mut page = [0; PAGE_BYTES];
//! handle.read(7, &mut page)?;
//! assert_eq!(page, [42; PAGE_BYTES]);
//! # Ok::<(), dyno_pages::StoreError>(())
//! ```

mod arena;
pub mod check;
pub mod corpus;
mod error;
pub mod heap;
mod index;
mod store;

pub use arena::slots::ClassUse;
/// The codecs alone, for programs that measure them without a store.
pub use dyno_codec::lz4::{Codec, Page};
pub use error::{Damage, StoreError};
pub use store::{
    Background, BackgroundProgress, BackingFile, Bad, Compacted, Handle, KindCount, Recompressed,
    Recompressor, Recovered, Schedule, Settings, Stats, Store, Tiers, WriteBack, WrittenBack,
    thread_time,
};

/// Bytes of a page, here and in every front.
pub const PAGE_BYTES: usize = 4096;

/// The highest limit that a store can have: an index entry addresses the arena in pages with a
/// fixed number of bits.
pub const MOST_LIMIT_BYTES: u64 = (PAGE_BYTES as u64) << index::entry::PAGE_PLACE_BITS;

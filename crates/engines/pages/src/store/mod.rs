//! The store: pages in and out.

mod background;
mod compact;
mod file;
mod huge;
mod lane;
mod place;
mod recompress;
mod recover;
mod shared;
mod stats;

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_codec::lz4;

use crate::arena::layout::Layout;
use crate::arena::memory::Memory;
use crate::arena::slots::Slots;
use crate::error::StoreError;

pub use background::{Background, Schedule, thread_time};
pub use compact::Compacted;
pub use lane::Lane;
pub use recompress::{Recompressed, Recompressor};
pub use recover::{Bad, Recovered};
pub use stats::{KindCount, Stats};

use file::Backing;
use huge::Huge;
use shared::Shared;

/// How a store is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Pages that it can hold.
    pub pages: u64,
    /// Bytes that stored pages may take in memory. The index comes on top, eight bytes a page.
    pub limit_bytes: u64,
    /// Whose LZ4 writes. Ours by default, which is the faster one.
    pub writer: lz4::Codec,
    /// Whose LZ4 reads. The C library by default: ours is no faster.
    pub reader: lz4::Codec,
    /// Whether checksums are compared when pages are read. Off, damage in memory goes unnoticed.
    pub verify: bool,
    /// A file that idle and incompressible pages can leave memory for, with its size in pages. Its
    /// content means something together with the memory alone.
    pub backing: Option<(PathBuf, u32)>,
    /// Whether pages of equal content share one slot. Costs each write a look-up by content and some
    /// 120 bytes of memory for each different page; a store opened again is as it was made.
    pub share: bool,
}

impl Settings {
    /// The defaults for so many pages in so many bytes.
    pub fn new(pages: u64, limit_bytes: u64) -> Self {
        Self {
            pages,
            limit_bytes,
            writer: lz4::Codec::Page,
            reader: lz4::Codec::C,
            verify: true,
            backing: None,
            share: false,
        }
    }
}

/// Pages, compressed, in a file in memory. All calls take `&self`; each thread that reads or writes
/// has a [`Lane`] of its own.
#[derive(Debug)]
pub struct Store {
    memory: Memory,
    slots: Slots,
    backing: Option<Backing>,
    huge: Huge,
    /// There when pages of equal content share slots.
    shared: Option<Shared>,
    settings: Settings,
    /// Pages refused for want of space.
    refused: AtomicU64,
}

impl Store {
    /// An empty store.
    ///
    /// # Errors
    /// When a size cannot be, or the system has no memory, or the file cannot be made.
    pub fn create(settings: Settings) -> Result<Self, StoreError> {
        let layout = Layout {
            shared: settings.share,
            ..Layout::new(settings.pages, settings.limit_bytes)?
        };
        let memory = Memory::create(layout)?;
        let slots = Slots::new(layout.spans);
        let backing = Backing::of(&settings, file::Start::Empty)?;
        Ok(Self {
            huge: Huge::new(memory.huge_pages()),
            shared: layout.shared.then(Shared::new),
            memory,
            slots,
            backing,
            settings,
            refused: AtomicU64::new(0),
        })
    }

    /// A reader and writer for one thread.
    ///
    /// # Errors
    /// When there is no memory for its contexts.
    pub fn lane(&self) -> Result<Lane<'_>, StoreError> {
        Lane::new(self)
    }

    /// Pages that it can hold.
    pub fn pages(&self) -> u64 {
        self.memory.layout().pages
    }

    /// The file in memory, for a supervisor to hold: as long as somebody does, [`Store::reopen`]
    /// finds every page that a call had returned for when the process died.
    pub fn memory_file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    fn in_range(&self, page: u64) -> Result<(), StoreError> {
        let pages = self.pages();
        if page < pages {
            Ok(())
        } else {
            Err(StoreError::OutOfRange { page, pages })
        }
    }

    fn no_space(&self, needed_bytes: usize) -> StoreError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        StoreError::NoSpace {
            needed_bytes,
            limit_bytes: self.settings.limit_bytes,
        }
    }
}

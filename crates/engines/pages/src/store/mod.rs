//! The store: pages in and out.

mod background;
mod compact;
mod consolidate;
mod damage;
mod file;
mod huge;
mod lane;
mod locking;
mod place;
mod recompress;
mod recover;
mod relief;
mod shared;
mod stats;

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use dyno_codec::lz4;
use parking_lot::Mutex;

use crate::arena::layout::Layout;
use crate::arena::memory::Memory;
use crate::arena::slots::Slots;
use crate::error::StoreError;

pub use background::{Background, Schedule, Work, thread_time};
pub use compact::Compacted;
pub use file::{WriteBack, WrittenBack};
pub use lane::Lane;
pub use recompress::{Recompressed, Recompressor};
pub use recover::{Bad, Recovered};
pub use stats::{KindCount, Stats};

use consolidate::Attempts;
use damage::DamageLog;
use file::Backing;
use huge::Huge;
use locking::Holders;
use shared::Shared;

/// What packs pages when they are written, and when they are not touched any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiers {
    /// LZ4, and that is all: the fastest to read.
    Lz4,
    /// zstd at once: the smallest from the beginning, some three times as long a write.
    Zstd,
    /// LZ4, and what is idle again with zstd.
    Lz4ThenZstd,
}

/// How a store is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Pages that it can hold.
    pub pages: u64,
    /// Bytes that stored pages may take in memory. No write is refused while pages of ordinary
    /// lengths take, with the new one, 94% of it less 256 KiB: slots are somewhat longer than
    /// pages, and some of them are of lengths that no page has. A store that gets more than fits
    /// looks for room now and then only, and may refuse some writes meanwhile that would fit. Pages
    /// that share slots do not move, and can take more. On top come the index, 4 KiB for each 512
    /// pages of which one was ever touched, and 128 KiB through which a full store overwrites and
    /// moves pages.
    pub limit_bytes: u64,
    /// What packs pages.
    pub tiers: Tiers,
    /// zstd's level, 1 to 19.
    pub level: i32,
    /// Whose LZ4 writes. Ours by default, which is the faster one; the C library reads.
    pub writer: lz4::Codec,
    /// Whether checksums are compared when pages are read. Off, damage in memory goes unnoticed.
    pub verify: bool,
    /// A file that idle and incompressible pages can leave memory for, with its size in pages. Its
    /// content means something together with the memory alone. A new store empties it.
    pub backing: Option<(PathBuf, u32)>,
    /// Whether pages of equal content share one slot. Costs each write a look-up by content and
    /// some 120 bytes of memory for each different page; a store opened again is as it was made.
    pub share: bool,
}

impl Settings {
    /// The defaults for so many pages in so many bytes.
    pub fn new(pages: u64, limit_bytes: u64) -> Self {
        Self {
            pages,
            limit_bytes,
            tiers: Tiers::Lz4ThenZstd,
            level: recompress::LEVEL,
            writer: lz4::Codec::Page,
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
    /// The marks of the threads that lock entries.
    holders: Holders,
    damage: DamageLog,
    /// Pages refused for want of space.
    refused: AtomicU64,
    /// Pages that could not be written to the file.
    kept_back: AtomicU64,
    /// Where a write that finds no space goes on writing pages back.
    relief_page: AtomicU64,
    /// Held by the write that moves pages together.
    attempts: Mutex<Attempts>,
    /// Times that it was done.
    consolidated: AtomicU64,
}

/// Spans that no limit counts: the reserve, and one that pages are moved through.
const BESIDE_SPANS: u32 = 2;

fn check(settings: &Settings) -> Result<(), StoreError> {
    match settings.level {
        1..=19 => Ok(()),
        other => Err(StoreError::Settings(format!(
            "zstd's level {other}: 1 to 19 can be"
        ))),
    }
}

impl Store {
    /// An empty store.
    ///
    /// # Errors
    /// When a size cannot be, or the system has no memory, or the file cannot be made.
    pub fn create(settings: Settings) -> Result<Self, StoreError> {
        let mut layout = Layout {
            shared: settings.share,
            ..Layout::new(settings.pages, settings.limit_bytes)?
        };
        // The reserve, and a span to move pages through; both within the limit where an entry could
        // not point at them otherwise, at the very highest limit.
        layout.spans = (layout.spans + BESIDE_SPANS).min(Layout::most_spans());
        check(&settings)?;
        let memory = Memory::create(layout)?;
        let backing = Backing::of(&settings, file::Start::Empty)?;
        Ok(Self::of(
            memory,
            Slots::new(layout.spans),
            backing,
            settings,
        ))
    }

    fn of(memory: Memory, mut slots: Slots, backing: Option<Backing>, settings: Settings) -> Self {
        if let Some(span) = slots.keep_reserve() {
            // Before any entry points into it, so that the next one to open the memory knows its
            // class.
            memory.class(span).store(
                slots.classes().of_pages(),
                std::sync::atomic::Ordering::Release,
            );
        }
        Self {
            huge: Huge::new(memory.huge_pages()),
            shared: memory.layout().shared.then(Shared::new),
            memory,
            slots,
            backing,
            settings,
            holders: Holders::default(),
            damage: DamageLog::default(),
            refused: AtomicU64::new(0),
            kept_back: AtomicU64::new(0),
            relief_page: AtomicU64::new(0),
            attempts: Mutex::default(),
            consolidated: AtomicU64::new(0),
        }
    }

    /// A reader and writer for one thread.
    ///
    /// # Errors
    /// When there is no memory for its contexts.
    pub fn lane(&self) -> Result<Lane<'_>, StoreError> {
        Lane::new(self)
    }

    /// How it was made or opened.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Pages that it can hold.
    pub fn pages(&self) -> u64 {
        self.memory.layout().pages
    }

    /// The file in memory, for a supervisor to hold: as long as it does, [`Store::reopen`]
    /// finds every page that a call had returned for when the process died.
    pub fn memory_file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// The pages from `from` on whose entries were ever touched, in order. The index of a large
    /// store is mostly a hole, and a look at an entry in it would take memory for it.
    fn touched_from(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        let mut run = from..from;
        std::iter::from_fn(move || {
            if run.is_empty() {
                run = self.memory.touched(run.end)?;
            }
            run.next()
        })
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
        StoreError::NoSpace {
            needed_bytes,
            limit_bytes: self.settings.limit_bytes,
        }
    }
}

//! The store itself: pages go in and come out, and everything that moves them meanwhile.

mod background;
mod compact;
mod consolidate;
mod damage;
mod dictionary;
mod file;
mod handle;
mod huge;
mod locking;
mod recompress;
mod recover;
mod relief;
mod reread;
mod shared;
mod slot_access;
mod stats;

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use dyno_codec::lz4;
use parking_lot::Mutex;

use crate::arena::layout::Layout;
use crate::arena::memory::Memory;
use crate::arena::slots::Slots;
use crate::error::StoreError;

pub use background::{Background, BackgroundProgress, Schedule, thread_time};
pub use compact::Compacted;
pub use file::{WriteBack, WrittenBack};
pub use handle::Handle;
pub use recompress::{Recompressed, Recompressor};
pub use recover::{Bad, Recovered};
pub use stats::{KindCount, Stats};

use consolidate::Attempts;
use damage::DamageLog;
use dictionary::Dictionary;
use file::Backing;
use huge::Huge;
use locking::Holders;
use reread::Reread;
use shared::Shared;

/// Which codec packs a page when it is written, and which once it is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiers {
    /// LZ4 alone: the fastest to read.
    Lz4,
    /// zstd from the first write: the smallest from the beginning, but a write takes about three
    /// times as long.
    Zstd,
    /// LZ4 when a page is written, and zstd for pages that became idle. Once enough are idle, they
    /// are packed with a dictionary trained on some of them, which makes most of them LZ4 blocks
    /// that refer to it, and the others zstd frames. A page that is read again soon goes back to
    /// the first tier.
    Lz4ThenZstd,
}

/// The settings of a store. `pages`, `limit_bytes` and `share` are fixed when the memory is made;
/// the others may differ each time that it is opened again.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Pages that the store can hold.
    pub pages: u64,
    /// Bytes that stored pages may take in memory. A write is not refused while pages of ordinary
    /// lengths, the new one included, take no more than 94% of it less 256 KiB: slots are somewhat
    /// longer than pages, and some of them are of lengths that no page has. A store that gets more
    /// than fits looks for room only now and then, and may meanwhile refuse some writes that would
    /// fit. Pages that share slots do not move, and can take more. The index comes on top, 4 KiB
    /// for each 512 pages of which one was ever touched, 128 KiB through which a full store
    /// overwrites and moves pages, and up to 64 KiB for the dictionary of idle pages.
    pub limit_bytes: u64,
    /// Which codecs pack pages, and when.
    pub tiers: Tiers,
    /// Compression level of zstd, 1 to 19. With a dictionary it is at least 6.
    pub level: i32,
    /// Which LZ4 encoder writes. The default is this project's, which is the faster one; the C
    /// library always decodes.
    pub writer: lz4::Codec,
    /// Whether checksums are compared when pages are read. If off, readers get damaged bytes
    /// without an error. Pages that are packed again, written back or checked are compared in any
    /// case.
    pub verify: bool,
    /// A file that idle and incompressible pages can be written back to.
    pub backing: Option<BackingFile>,
    /// Whether pages of equal content share one slot. Costs each write a look-up by content, and
    /// about 120 bytes of memory for each distinct page. A memory that is opened again keeps what
    /// it was made with.
    pub share: bool,
}

impl Settings {
    /// The default settings for a store of `pages` pages in `limit_bytes` of memory.
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

/// A file for pages that leave memory. Its content means something only together with the memory. A
/// new store empties it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackingFile {
    /// The path of the file.
    pub path: PathBuf,
    /// How many pages the file may hold.
    pub pages: u32,
}

/// Compressed pages in a file in memory. All calls take `&self`; each thread that reads or writes
/// has a [`Handle`] of its own.
#[derive(Debug)]
pub struct Store {
    memory: Memory,
    slots: Slots,
    backing: Option<Backing>,
    huge: Huge,
    /// `Some` only if pages of equal content share slots.
    shared: Option<Shared>,
    /// What the second tier packs pages with.
    dictionary: Dictionary,
    /// Pages of the second tier that are no longer idle.
    reread: Reread,
    settings: Settings,
    /// The marks of the threads that lock entries.
    holders: Holders,
    damage: DamageLog,
    /// Writes refused for want of space.
    refused: AtomicU64,
    /// Pages that stayed in memory because the backing file refused them.
    kept_back: AtomicU64,
    /// The page from which the next write that finds no space goes on writing pages back.
    relief_page: AtomicU64,
    /// Held by the thread that moves pages together, so that one does it at a time.
    attempts: Mutex<Attempts>,
    /// How often pages were moved together; tells a waiting write that another thread has done it.
    consolidated: AtomicU64,
}

/// Spans that the limit does not count: the reserve, and one through which pages are moved.
const BESIDE_SPANS: u32 = 2;

fn check(settings: &Settings) -> Result<(), StoreError> {
    match settings.level {
        1..=19 => Ok(()),
        other => Err(StoreError::Settings(format!(
            "zstd's level {other} is not from 1 to 19"
        ))),
    }
}

impl Store {
    /// Makes an empty store.
    ///
    /// # Errors
    /// If a setting is outside its range, the system refuses the memory, or the backing file
    /// cannot be made.
    pub fn create(settings: Settings) -> Result<Self, StoreError> {
        let mut layout = Layout {
            shared: settings.share,
            ..Layout::new(settings.pages, settings.limit_bytes)?
        };
        // The reserve, and a span to move pages through. Both come out of the limit only at the
        // very highest one, where an entry could not point at further spans.
        layout.spans = (layout.spans + BESIDE_SPANS).min(Layout::most_spans());
        check(&settings)?;
        let memory = Memory::create(layout)?;
        let backing = Backing::from_settings(&settings, file::Start::Empty)?;
        Ok(Self::from_parts(
            memory,
            Slots::new(layout.spans),
            backing,
            Dictionary::default(),
            settings,
        ))
    }

    fn from_parts(
        memory: Memory,
        mut slots: Slots,
        backing: Option<Backing>,
        dictionary: Dictionary,
        settings: Settings,
    ) -> Self {
        if let Some(span) = slots.keep_reserve() {
            // The class is stored before any entry can point into the span, because the next
            // process that opens the memory checks entries against it.
            memory.class(span).store(
                slots.classes().whole_page(),
                std::sync::atomic::Ordering::Release,
            );
        }
        Self {
            huge: Huge::new(memory.huge_pages()),
            shared: memory.layout().shared.then(Shared::new),
            memory,
            slots,
            backing,
            dictionary,
            reread: Reread::default(),
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

    /// Makes the handle by which one thread reads and writes. It allocates here what the thread
    /// will need, so that no later call does.
    ///
    /// # Errors
    /// When there is no memory for its contexts.
    pub fn handle(&self) -> Result<Handle<'_>, StoreError> {
        Handle::new(self)
    }

    /// The settings that the store was made or opened with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Pages that the store can hold.
    pub fn pages(&self) -> u64 {
        self.memory.layout().pages
    }

    /// The file in memory, for a supervisor to hold: as long as it does, [`Store::reopen`] finds
    /// every page whose write had returned when the process died.
    pub fn memory_file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// The pages of `range` whose entries were ever touched, in order: all others are empty, and to
    /// discard one of them would allocate memory for its entry.
    pub fn touched(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        self.touched_from(range.start)
            .take_while(move |&page| page < range.end)
    }

    /// The pages from `from` on whose entries were ever touched, in order. The index of a large
    /// store is mostly a hole, and even reading an entry in it would allocate memory for it.
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

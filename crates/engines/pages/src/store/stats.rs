//! Counts of pages, forms and memory at one moment.

use std::sync::atomic::Ordering::Relaxed;

use super::Store;
use super::slot_access::extent;
use crate::PAGE_BYTES;
use crate::arena::slots::ClassUse;
use crate::error::StoreError;
use crate::index::entry::{Entry, Packing, Stored};

/// How many pages are stored in one form, and in how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KindCount {
    /// Pages stored in this form.
    pub pages: u64,
    /// Their bytes as stored, without the rounding to slots.
    pub bytes: u64,
}

/// Figures of one moment. Each page is looked at once and without its lock, so writers at work make
/// the sums approximate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// Pages that were never written, or were discarded.
    pub empty: u64,
    /// Pages that repeat two bytes or one word of eight.
    pub repeated: KindCount,
    /// Pages packed with LZ4, the first tier.
    pub lz4: KindCount,
    /// Pages packed by the second tier, or with zstd from the first write.
    pub zstd: KindCount,
    /// Incompressible pages, stored as they are.
    pub raw: KindCount,
    /// Pages in the backing file, which take no slot.
    pub file: KindCount,
    /// Stored pages by the passes of ageing since they were touched: 0, 1, 2, and 3 or more.
    pub by_age: [u64; 4],
    /// Pages for which the second tier did not pay.
    pub stubborn: u64,
    /// Pages whose index entry is damaged; reads of them fail.
    pub damaged_entries: u64,
    /// Reads that failed because a page is damaged, since the store was opened.
    pub corrupt_reads: u64,
    /// Distinct damaged pages met since the store was opened.
    pub corrupt_pages: u64,
    /// Pages that share the slot of another page with the same content.
    pub shared: u64,
    /// Writes refused for want of space since the store was opened.
    pub refused: u64,
    /// How often the backing file refused a page since the store was opened; the page stayed in
    /// memory.
    pub kept_back: u64,
    /// Pages that the backing file can hold; `None` without one.
    pub file_pages: Option<u32>,
    /// Whether the backing file is written past the page cache; `None` without one.
    pub file_direct: Option<bool>,
    /// Bytes of the slots in use, the rounding included.
    pub slot_bytes: u64,
    /// Bytes of the spans that classes have.
    pub span_bytes: u64,
    /// Bytes that the system holds for the file in memory: index, spans, and free spans that were
    /// not given back.
    pub resident_bytes: u64,
    /// Bytes of the process's own memory: bitmaps of slots, lists, maps of shared content.
    pub beside_bytes: u64,
    /// The usage of each class of slots, from the shortest slots to the longest.
    pub classes: Vec<ClassUse>,
}

impl Stats {
    /// Pages that are not empty, in memory or in the backing file.
    pub fn stored_pages(&self) -> u64 {
        self.by_age.iter().sum()
    }

    /// Bytes of the pages in memory for each byte of memory held, all overhead included; 0 for an
    /// empty store.
    pub fn ratio(&self) -> f64 {
        let held = self.resident_bytes + self.beside_bytes;
        if held == 0 {
            return 0.0;
        }
        ((self.stored_pages() - self.file.pages) * PAGE_BYTES as u64) as f64 / held as f64
    }
}

impl Store {
    /// Counts pages and memory. Looks at every touched entry, so the cost grows with the store.
    ///
    /// # Errors
    /// When the system cannot tell how much memory it holds.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let mut stats = Stats {
            refused: self.refused.load(Relaxed),
            kept_back: self.kept_back.load(Relaxed),
            corrupt_reads: self.corrupt_reads(),
            corrupt_pages: self.corrupt_pages(),
            file_pages: self.backing.as_ref().map(super::file::Backing::pages),
            file_direct: self.backing.as_ref().map(super::file::Backing::direct),
            shared: self.shared.as_ref().map_or(0, super::shared::Shared::saved),
            resident_bytes: self.memory.resident_bytes()?,
            beside_bytes: self.beside_bytes(),
            classes: self.slots.usage(),
            ..Stats::default()
        };
        for class in &stats.classes {
            stats.slot_bytes += class.used * class.slot_bytes as u64;
            stats.span_bytes += u64::from(class.spans) * crate::arena::classes::SPAN_BYTES as u64;
        }
        let mut looked_at = 0;
        for page in self.touched_from(0) {
            looked_at += 1;
            match Entry::unpack(self.peek(page)) {
                Some(found) => stats.count(found),
                None => stats.damaged_entries += 1,
            }
        }
        stats.empty += self.pages() - looked_at;
        Ok(stats)
    }

    /// The name of the backing file, as people know it.
    pub fn file_name(&self) -> Option<&std::path::Path> {
        self.backing.as_ref().map(super::file::Backing::name)
    }

    /// Overhead for each page in bytes when the store is full of pages of `mean_bytes` each: index,
    /// checksums, classes of spans, bitmaps and lists.
    pub fn overhead_bytes_per_page(&self, mean_bytes: usize) -> f64 {
        let layout = self.memory.layout();
        let index = (layout.arena_at() as u64) as f64 / layout.pages as f64;
        let spans = self.slots.overhead_bytes() as f64 / f64::from(layout.spans);
        let pages_of_span = (crate::arena::classes::SPAN_BYTES / mean_bytes.max(1)) as f64;
        index + super::slot_access::SUM_BYTES as f64 + spans / pages_of_span
    }

    fn beside_bytes(&self) -> u64 {
        let file = self
            .backing
            .as_ref()
            .map_or(0, super::file::Backing::overhead_bytes);
        let shared = self.shared.as_ref();
        self.slots.overhead_bytes()
            + self.huge.overhead_bytes()
            + self.dictionary.overhead_bytes()
            + self.reread.overhead_bytes()
            + file
            + shared.map_or(0, super::shared::Shared::overhead_bytes)
    }
}

impl Stats {
    fn count(&mut self, entry: Entry) {
        let bytes = extent(entry.stored).map_or(0, |extent| extent.len as u64);
        let kind = match entry.stored {
            Stored::Empty => {
                self.empty += 1;
                return;
            }
            Stored::Fill { .. } => &mut self.repeated,
            Stored::Raw { .. } => &mut self.raw,
            Stored::File { .. } => &mut self.file,
            Stored::Packed {
                packing: Packing::Word,
                ..
            } => &mut self.repeated,
            Stored::Packed {
                packing: Packing::Lz4,
                ..
            } => &mut self.lz4,
            Stored::Packed {
                packing: Packing::Zstd | Packing::Dictionary,
                ..
            } => &mut self.zstd,
        };
        kind.pages += 1;
        kind.bytes += bytes;
        self.by_age[usize::from(entry.age)] += 1;
        self.stubborn += u64::from(entry.stubborn);
    }
}

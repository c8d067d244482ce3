//! The dictionary of the second tier. It is trained on idle pages of the store itself once there
//! are enough of them, and lies in the store's memory, so that it outlives the process as pages do.
//! Has `unsafe`: the dictionary's bytes in that memory.
//!
//! A memory has one dictionary for its whole life, because what was packed with it can be unpacked
//! with no other. Pages that resemble those it was trained on are packed shorter and read faster
//! with it; others fare as without one.
//!
//! The bytes are written first and their head last, and only then may a page refer to them. A
//! process that is killed in between leaves a memory without a dictionary, or one with a dictionary
//! that no page uses yet.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use dyno_checksum::crc32c;
use dyno_codec::dictionary::MOST_DICTIONARY_BYTES;
use dyno_codec::lz4::{BLOCK_BOUND, Page};
use dyno_codec::{dictionary, zstd};
use dyno_random::Random;
use parking_lot::Mutex;

use super::Store;
use super::handle::Form;
use super::recompress::Recompressor;
use crate::PAGE_BYTES;
use crate::arena::memory::Memory;
use crate::error::StoreError;
use crate::heap;
use crate::index::entry::{Entry, Packing, Stored};

/// Pages that a dictionary is trained on and judged by, and so the fewest idle pages of a store
/// that trains one. In a store with fewer a dictionary takes more memory than it saves.
const SAMPLE_PAGES: usize = 1024;
/// One page in this many is not trained on, and is packed both ways to judge the dictionary.
const JUDGED: usize = 8;

/// A dictionary must make pages shorter than the first tier by one part in this many, and may make
/// them longer than zstd without one by as much: most of them are blocks of LZ4 with it, and zstd
/// takes more than twice as long to read.
const WORTH: usize = 10;

/// The dictionary of a store, if it has one.
#[derive(Debug, Default)]
pub struct Dictionary {
    /// Not set: none yet. `None`: there is one and it is damaged, so that no other may take its
    /// place; pages may have been packed with it.
    prepared: OnceLock<Option<dictionary::Dictionary>>,
    /// Held by the thread that trains one. How many idle pages there were when that was last tried
    /// and did not pay.
    tried_pages: Mutex<usize>,
}

impl Dictionary {
    /// Finds the dictionary of a memory that is opened again.
    ///
    /// # Errors
    /// When the memory to prepare it cannot be allocated.
    pub fn open(memory: &Memory) -> Result<Self, StoreError> {
        let found = Self::default();
        let Some((len, sum)) = head_of(memory) else {
            return Ok(found);
        };
        // SAFETY: the head is set, and the length is compared before the bytes are looked at.
        let bytes = || unsafe { memory.dictionary(len) };
        let whole = len <= MOST_DICTIONARY_BYTES && crc32c(bytes()) == sum;
        let prepared = if whole {
            Some(dictionary::Dictionary::new(bytes())?)
        } else {
            None
        };
        found.prepared.get_or_init(|| prepared);
        Ok(found)
    }

    /// What decodes pages that were packed with it; `None` if the store has not trained one, or it
    /// is damaged.
    #[inline(always)]
    pub fn get(&self) -> Option<&dictionary::Dictionary> {
        self.prepared.get()?.as_ref()
    }

    /// Bytes of the process's memory that it takes.
    pub fn overhead_bytes(&self) -> u64 {
        self.get().map_or(0, dictionary::Dictionary::memory_bytes) as u64
    }
}

/// Length and checksum of the dictionary that a memory holds; `None` if it holds none.
fn head_of(memory: &Memory) -> Option<(usize, u32)> {
    let head = memory.dictionary_head()?.load(Acquire);
    (head != 0).then_some((head as u32 as usize, (head >> 32) as u32))
}

impl Store {
    /// Makes `bytes` the dictionary, whose head this is. The caller holds the lock of
    /// [`Dictionary::tried_pages`], and the store does not have one yet.
    fn keep_dictionary(&self, head: &AtomicU64, bytes: &[u8]) -> Result<(), StoreError> {
        let prepared = dictionary::Dictionary::new(bytes)?;
        // SAFETY: there is room for one, and no head, so that no thread looks at the bytes.
        unsafe { self.memory.write_dictionary(bytes) };
        let word = bytes.len() as u64 | u64::from(crc32c(bytes)) << 32;
        // Release order keeps the bytes in front of the head, and both in front of every entry that
        // refers to them: those are made by threads that have seen it prepared.
        head.store(word, Release);
        self.dictionary.prepared.get_or_init(|| Some(prepared));
        Ok(())
    }

    /// Pages that a dictionary may be trained on: compressible and idle.
    fn samples(&self, idle: u8) -> impl Iterator<Item = u64> + '_ {
        let fits = move |&page: &u64| {
            let packed = |found: Entry| {
                found.age >= idle
                    && matches!(
                        found.stored,
                        Stored::Packed {
                            packing: Packing::Lz4 | Packing::Zstd,
                            ..
                        }
                    )
            };
            Entry::unpack(self.peek(page)).is_some_and(packed)
        };
        self.touched_from(0).filter(fits)
    }
}

impl Recompressor<'_> {
    /// Trains the store's dictionary on pages that were not touched for `idle` passes of
    /// [`Store::age`], if it has none and enough of its pages are idle. Returns whether it has one
    /// now that it had not before.
    ///
    /// That happens once in the life of a memory, and takes about 0.1 seconds of processor time and
    /// 8 MB of memory while it lasts. An attempt that shows no gain is repeated only when twice as
    /// many pages are idle.
    ///
    /// # Errors
    /// When memory cannot be allocated. Damaged pages are passed over.
    pub fn train(&mut self, idle: u8) -> Result<bool, StoreError> {
        let store = self.handle.store();
        let Some(head) = store.memory.dictionary_head() else {
            return Ok(false);
        };
        let mut tried_pages = store.dictionary.tried_pages.lock();
        // Under the lock, because another thread may have trained one until it was free.
        if store.dictionary.prepared.get().is_some() {
            return Ok(false);
        }
        let idle_pages = store.samples(idle).count();
        if idle_pages < SAMPLE_PAGES.max(2 * *tried_pages) {
            return Ok(false);
        }
        *tried_pages = idle_pages;
        let sample = self.sample(idle, idle_pages / SAMPLE_PAGES);
        let made = self.make(sample);
        // Training leaves the allocator with 1.5 MB that it would keep, as much as a thousand pages
        // take.
        heap::give_back();
        let Some(bytes) = made? else {
            return Ok(false);
        };
        store.keep_dictionary(head, &bytes)?;
        Ok(true)
    }

    /// Trains a dictionary on one part of the sample and judges it by the other; `None` if it does
    /// not pay.
    fn make(&mut self, sample: Vec<Page>) -> Result<Option<Vec<u8>>, StoreError> {
        let (judged, trained) = sample.split_at(sample.len() / JUDGED);
        // The library refuses pages in which too little repeats, and then a dictionary is of no
        // use.
        let Ok(bytes) = dictionary::train(trained, MOST_DICTIONARY_BYTES) else {
            return Ok(None);
        };
        Ok(self.pays(&bytes, judged)?.then_some(bytes))
    }

    /// Every `step`-th of the pages that may be trained on, [`SAMPLE_PAGES`] at most, in random
    /// order, because neighbours resemble each other.
    fn sample(&mut self, idle: u8, step: usize) -> Vec<Page> {
        let store = self.handle.store();
        let mut sample = Vec::with_capacity(SAMPLE_PAGES);
        let mut page = [0; PAGE_BYTES];
        for number in store.samples(idle).step_by(step.max(1)).take(SAMPLE_PAGES) {
            // A page that changed since it was chosen is as good as another one, and the passes
            // that follow note damage.
            if self.handle.look(number, &mut page).is_ok() {
                sample.push(page);
            }
        }
        Random::new(sample.len() as u64).shuffle(&mut sample);
        sample
    }

    /// Whether pages that a dictionary was not trained on become shorter with it than with LZ4
    /// alone, and hardly longer than with zstd alone.
    fn pays(&mut self, bytes: &[u8], pages: &[Page]) -> Result<bool, StoreError> {
        let level = self.handle.store().settings.level;
        let mut alone = zstd::Encoder::new(level)?;
        let mut with = dictionary::Encoder::new(bytes, level)?;
        let (mut first_bytes, mut alone_bytes, mut with_bytes) = (0, 0, 0);
        for page in pages {
            first_bytes += match self.handle.encode(page) {
                Form::Packed { len, .. } => len,
                _ => PAGE_BYTES,
            };
            let block = &mut self.block;
            // A page that does not become shorter is stored as it is.
            let alone = alone.encode(page, block, BLOCK_BOUND);
            alone_bytes += alone.unwrap_or(PAGE_BYTES).min(PAGE_BYTES);
            let with = with.encode(page, block, BLOCK_BOUND);
            with_bytes += with.unwrap_or(PAGE_BYTES).min(PAGE_BYTES);
        }
        let is_shorter = with_bytes + with_bytes / WORTH <= first_bytes;
        Ok(is_shorter && with_bytes <= alone_bytes + alone_bytes / WORTH)
    }
}

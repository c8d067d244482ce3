//! Stores near their limit whose pages change the length that they are packed to.

use std::sync::atomic::{AtomicBool, Ordering};

use dyno_codec::lz4::{BLOCK_BOUND, Encoder};
use dyno_pages::check::{page_of, page_of_length};
use dyno_pages::{Codec, PAGE_BYTES, Page, Settings, Store, StoreError};

const SPAN_BYTES: u64 = 64 * 1024;
/// Of the longest slot that saves something, without the checksum.
const LONGEST_PACKED_BYTES: usize = 3852;

/// One page of eight cannot be packed. The others take from 100 to 3,900 bytes, the more of them
/// the less they take.
fn content(seed: u64) -> Page {
    let share = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    let noise = match seed % 8 {
        0 => PAGE_BYTES,
        _ => 100 + ((share * share * 3800) >> 32) as usize,
    };
    page_of_length(seed, noise)
}

/// Bytes that a page takes, without the rounding to slots.
fn stored_bytes(encoder: &mut Encoder, page: &Page) -> u64 {
    let mut block = Box::new([0; BLOCK_BOUND]);
    let packed = encoder.encode(page, &mut block, LONGEST_PACKED_BYTES);
    packed.map_or(PAGE_BYTES as u64, |len| len as u64 + 4)
}

/// Of a limit, what [`Settings::limit_bytes`] promises to hold.
const PROMISED_PERCENT: u64 = 94;
/// Of a limit, what is held in any case by a store that had more pages than fit a moment ago. It
/// rests between two attempts to make room, and may refuse meanwhile what an attempt would find
/// room for.
const HELD_PERCENT: u64 = 85;

/// Where the slots of a store are that nothing is in.
fn free_slots(store: &Store) -> String {
    let stats = store.stats().expect("figures");
    let slots = |class: &dyno_pages::ClassUse| {
        let of_span = SPAN_BYTES / class.slot_bytes as u64;
        (of_span, of_span * u64::from(class.spans) - class.used)
    };
    let partly = stats.classes.iter().filter(|class| slots(class).1 > 0);
    let bytes: u64 = stats
        .classes
        .iter()
        .map(|class| slots(class).1 * class.slot_bytes as u64)
        .sum();
    let within = stats
        .classes
        .iter()
        .map(|class| u64::from(class.spans) - class.used.div_ceil(slots(class).0));
    format!(
        "{:.1} spans' worth of slots are free in {} classes, and moving within a class would free {} spans",
        bytes as f64 / SPAN_BYTES as f64,
        partly.count(),
        within.sum::<u64>()
    )
}

/// A store with pages of known contents, of which none was refused that had to fit.
struct Filled {
    store: Store,
    limit_bytes: u64,
    contents: Vec<Page>,
    lengths: Vec<u64>,
    /// The number of the content of each page.
    holds: Vec<Option<usize>>,
    live_bytes: u64,
    refused: u64,
    /// Of the limit, the live bytes up to which nothing may be refused.
    must_fit_percent: u64,
}

impl Filled {
    /// So many pages, whose bytes are `percent` of the limit.
    fn new(count: usize, percent: u64, share: bool) -> Self {
        let contents: Vec<Page> = (1..=count as u64).map(content).collect();
        let mut encoder = Encoder::new(Codec::Page);
        let lengths: Vec<u64> = contents
            .iter()
            .map(|page| stored_bytes(&mut encoder, page))
            .collect();
        let all: u64 = lengths.iter().sum();
        let limit_bytes = (all * 100 / percent).next_multiple_of(SPAN_BYTES);
        let settings = Settings {
            share,
            ..Settings::new(count as u64, limit_bytes)
        };
        let mut filled = Self {
            store: Store::create(settings).expect("memory"),
            limit_bytes,
            contents,
            lengths,
            holds: vec![None; count],
            live_bytes: 0,
            refused: 0,
            must_fit_percent: if percent > PROMISED_PERCENT {
                HELD_PERCENT
            } else {
                PROMISED_PERCENT
            },
        };
        (0..count).for_each(|page| filled.write(page, page));
        filled
    }

    fn write(&mut self, page: usize, content: usize) {
        let before = self.holds[page].map_or(0, |content| self.lengths[content]);
        let live_bytes = self.live_bytes - before + self.lengths[content];
        let mut handle = self.store.handle().expect("memory");
        match handle.write(page as u64, &self.contents[content]) {
            Ok(()) => {
                self.holds[page] = Some(content);
                self.live_bytes = live_bytes;
            }
            Err(StoreError::NoSpace { .. }) => {
                let must_fit =
                    live_bytes + 4 * SPAN_BYTES <= self.limit_bytes * self.must_fit_percent / 100;
                assert!(
                    !must_fit,
                    "{live_bytes} bytes of {} were refused: {}",
                    self.limit_bytes,
                    free_slots(&self.store)
                );
                self.refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Overwrites all pages in a scattered order by others of the same lengths.
    fn overwrite(&mut self, pass: usize) {
        let count = self.holds.len();
        for step in 0..count {
            // A prime that divides no count here, so that every page has its turn.
            let page = step * 7919 % count;
            self.write(page, (page + (pass + 1) * (count / 3 + 1)) % count);
        }
    }

    /// Compares every page, here and after the store was opened again.
    fn compare(self) {
        let compare = |store: &Store| {
            let mut handle = store.handle().expect("memory");
            let mut bytes = [0; PAGE_BYTES];
            for (page, holds) in self.holds.iter().enumerate() {
                handle.read(page as u64, &mut bytes).expect("whole");
                let expected = holds.map_or([0; PAGE_BYTES], |content| self.contents[content]);
                assert!(bytes == expected, "page {page}");
            }
            assert!(store.check().expect("memory").is_empty());
        };
        compare(&self.store);
        let file = self.store.memory_file();
        let file = file.try_clone_to_owned().expect("a descriptor");
        drop(self.store);
        let (store, found) = Store::reopen(file, Settings::new(1, 1)).expect("a store");
        assert_eq!((found.unlocked, found.damaged), (0, 0));
        assert_eq!(store.settings().limit_bytes, self.limit_bytes);
        compare(&store);
    }
}

#[test]
fn a_store_near_its_limit_takes_pages_of_other_lengths() {
    for (count, percent) in [(1_000, 80), (6_000, 94), (24_000, 96)] {
        let mut filled = Filled::new(count, percent, false);
        (0..3).for_each(|pass| filled.overwrite(pass));
        assert_eq!(filled.refused, 0, "{count} pages");
        filled.compare();
    }
}

#[test]
fn a_store_refuses_only_what_does_not_fit() {
    for share in [false, true] {
        let mut refused = 0;
        for (count, percent) in [(300, 90), (1_000, 90), (1_000, 97), (6_000, 97)] {
            let mut filled = Filled::new(count, percent, share);
            (0..3).for_each(|pass| filled.overwrite(pass));
            refused += filled.refused;
            filled.compare();
        }
        assert!(refused > 0, "every store had room");
    }
}

#[test]
fn pages_that_became_shorter_in_the_slots_that_they_had_leave_room_for_others() {
    let store = Store::create(Settings::new(3000, 2 << 20)).expect("memory");
    let mut handle = store.handle().expect("memory");
    let noise = |page: u64| page_of(5 + 6 * page);
    let full = (0..3000).find(|&page| handle.write(page, &noise(page)).is_err());
    assert_eq!(full, Some(512), "whole pages");
    let short = |page: u64| page_of_length(page, 1000);
    for page in 0..512 {
        handle.write(page, &short(page)).expect("it has a slot");
    }
    let full = (512..3000).find(|&page| handle.write(page, &short(page)).is_err());
    let fit = (2 << 20) / 1040;
    let full = full.expect("it has a limit");
    assert!(
        full > fit * 9 / 10,
        "{full} of {fit} pages: {}",
        free_slots(&store)
    );
    for page in 0..full {
        let mut bytes = [0; PAGE_BYTES];
        handle.read(page, &mut bytes).expect("whole");
        assert!(bytes == short(page), "page {page}");
    }
    assert!(store.check().expect("memory").is_empty());
}

#[test]
fn threads_that_write_read_and_compact_a_full_store_see_whole_pages() {
    const PAGES: u64 = 1500;
    // Some nine tenths of the limit, so that pages move all the time and some are refused.
    let store = Store::create(Settings::new(PAGES, 3 << 20)).expect("memory");
    let over = AtomicBool::new(false);
    // A page holds one of the contents of its own number.
    let of = |page: u64, round: u64| content(1 + page + round % 40 * PAGES);
    std::thread::scope(|scope| {
        let (store, over) = (&store, &over);
        let writers = [0, 1, 2].map(|writer| {
            scope.spawn(move || {
                let mut handle = store.handle().expect("memory");
                let mut last = vec![None; PAGES as usize];
                let mut refused = 0;
                for round in 0..30_u64 {
                    for step in 0..PAGES / 3 {
                        let page = step * 487 % (PAGES / 3) * 3 + writer;
                        match handle.write(page, &of(page, round * 7 + page)) {
                            Ok(()) => last[page as usize] = Some(round * 7 + page),
                            Err(StoreError::NoSpace { .. }) => refused += 1,
                            Err(other) => panic!("{other}"),
                        }
                        let mut bytes = [0; PAGE_BYTES];
                        let read = (page * 31 + round) % (PAGES / 3) * 3 + writer;
                        handle.read(read, &mut bytes).expect("whole");
                        let expected =
                            last[read as usize].map_or([0; PAGE_BYTES], |round| of(read, round));
                        assert!(bytes == expected, "page {read}");
                    }
                }
                refused
            })
        });
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                store.compact(4).expect("memory given back");
            }
        });
        let refused: Vec<u32> = writers
            .into_iter()
            .map(|writer| writer.join().expect("no panic"))
            .collect();
        over.store(true, Ordering::Relaxed);
        println!("refused {refused:?}, {}", free_slots(store));
    });
    assert!(store.check().expect("memory").is_empty());
    let mut handle = store.handle().expect("memory");
    (0..PAGES).for_each(|page| handle.discard(page).expect("in range"));
    let stats = store.stats().expect("figures");
    assert_eq!(stats.slot_bytes, 0, "no slot leaked");
}

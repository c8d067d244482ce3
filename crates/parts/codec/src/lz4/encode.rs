//! This crate's encoder. Has `unsafe`: it reads the page and writes the block at positions that its
//! loops bound, without a check at each.
//!
//! It was made faster than the C library on the pages that it was tuned on (one machine with
//! AVX-512, November 2026; the suite `pages` measures anew) by these choices: it looks at two
//! positions in each turn, both looked up before either is compared; it hashes five bytes, which
//! drops most four-byte matches, as they save only one byte each; it measures a match 16 bytes at a
//! time; and it never extends a match backwards, which costs a branch that cannot be predicted and
//! wins little.
//!
//! These were tried and were slower: probing 16 positions at once with AVX-512 (hash, gather,
//! compare) and walking the bits, because 16 lookups need the same memory operations in any form;
//! four positions in each turn without a branch, because each match then waits for the one before;
//! a table that is not cleared between pages, by far, because stale entries point all over the page
//! and each is looked at, while empty ones all point at its start.

use super::lanes::{Lanes, Plain};
use super::{Block, PAGE_BYTES, Page};

const TABLE_BITS: u32 = 13;
pub(super) const TABLE_ENTRIES: usize = 1 << TABLE_BITS;
/// Where each hash was last seen in this page. 0 also stands for never; as a candidate it is
/// compared like any other position.
pub(super) type Table = [u16; TABLE_ENTRIES];

const MIN_MATCH: usize = 4;
/// The value of a token's nibble which says that the length continues behind it.
const MORE: usize = 15;
/// The last position where a match may begin. The format demands 12 bytes before the end, and 16
/// let literals be copied 16 at a time.
const START_LIMIT: usize = PAGE_BYTES - 16;
/// Where a match must end: the format demands at least five literals at the end.
const END_LIMIT: usize = PAGE_BYTES - 5;
/// After this many positions (a power of two) without a match, only every second one is looked at,
/// and so on.
const PATIENCE_BITS: u32 = 6;

/// Encodes with the widest instructions that the processor has.
pub(super) fn fastest(
    page: &Page,
    table: &mut Table,
    out: &mut Block,
    limit: usize,
) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor has the instructions.
        return unsafe { wide(page, table, out, limit) };
    }
    plain(page, table, out, limit)
}

/// Encodes without vector instructions, with the same result.
pub(super) fn plain(
    page: &Page,
    table: &mut Table,
    out: &mut Block,
    limit: usize,
) -> Option<usize> {
    Encoding::<Plain>::new(page, table, out).run(limit)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn wide(page: &Page, table: &mut Table, out: &mut Block, limit: usize) -> Option<usize> {
    Encoding::<super::lanes::Wide>::new(page, table, out).run(limit)
}

struct Encoding<'a, L> {
    page: &'a Page,
    table: &'a mut Table,
    out: &'a mut Block,
    /// First byte of the page that is not in the block yet.
    anchor: usize,
    /// Bytes in the block. Invariant: at most `anchor + anchor / 255 + 1`, because a sequence is at
    /// most as long as the bytes it stands for, plus one byte for each 255 literals.
    written: usize,
    lanes: std::marker::PhantomData<L>,
}

/// A repetition: the bytes at `start` are also at `from`, which comes before.
struct Match {
    start: usize,
    from: usize,
}

impl<'a, L: Lanes> Encoding<'a, L> {
    #[inline(always)]
    fn new(page: &'a Page, table: &'a mut Table, out: &'a mut Block) -> Self {
        table.fill(0);
        let lanes = std::marker::PhantomData;
        Self {
            page,
            table,
            out,
            anchor: 0,
            written: 0,
            lanes,
        }
    }

    #[inline(always)]
    fn run(mut self, limit: usize) -> Option<usize> {
        let limit = limit.min(PAGE_BYTES + PAGE_BYTES / 255 + 16);
        // Position 0 has nothing before it, and 0 in the table means "never seen" anyway.
        let mut at = 1;
        while let Some(found) = self.search(at) {
            let len = self.match_len(&found);
            self.write_sequence(&found, len);
            if self.written > limit {
                return None;
            }
            at = self.anchor;
            if at > START_LIMIT {
                break;
            }
            // Two positions inside the match are entered too, so that repetitions that begin there
            // are found.
            for inside in [at - 2, found.start + 1] {
                let hash = hash(self.word(inside));
                self.table[hash] = inside as u16;
            }
        }
        self.write_rest(limit)
    }

    /// The next match that begins at `at` or behind it.
    #[inline(always)]
    fn search(&mut self, mut at: usize) -> Option<Match> {
        let mut tries = 1usize << PATIENCE_BITS;
        let mut here = self.word(at);
        let mut place = hash(here);
        loop {
            let step = tries >> PATIENCE_BITS;
            tries += 1;
            let next = at + step;
            if next > START_LIMIT {
                return None;
            }
            let there = self.word(next);
            let next_place = hash(there);
            let first = usize::from(self.table[place]);
            self.table[place] = at as u16;
            let second = usize::from(self.table[next_place]);
            let (first_word, second_word) = (self.word(first), self.word(second));
            if first_word as u32 == here as u32 {
                return Some(Match {
                    start: at,
                    from: first,
                });
            }
            self.table[next_place] = next as u16;
            if second_word as u32 == there as u32 {
                return Some(Match {
                    start: next,
                    from: second,
                });
            }
            at = next + step;
            if at > START_LIMIT {
                return None;
            }
            here = self.word(at);
            place = hash(here);
        }
    }

    /// The length of a match, at least [`MIN_MATCH`].
    #[inline(always)]
    fn match_len(&self, found: &Match) -> usize {
        let mut len = MIN_MATCH;
        let base = self.page.as_ptr();
        while found.start + len + 16 <= END_LIMIT {
            // SAFETY: `from < start`, and both have 16 bytes before the page's end.
            let equal =
                unsafe { L::equal(base.add(found.start + len), base.add(found.from + len)) };
            // A branch with a constant step: the next comparison does not have to wait for the
            // result of this one.
            if equal < 16 {
                return len + equal;
            }
            len += 16;
        }
        while found.start + len < END_LIMIT
            && self.page[found.start + len] == self.page[found.from + len]
        {
            len += 1;
        }
        len
    }

    #[inline(always)]
    fn write_sequence(&mut self, found: &Match, len: usize) {
        let literals = found.start - self.anchor;
        let rest = len - MIN_MATCH;
        self.push((literals.min(MORE) << 4 | rest.min(MORE)) as u8);
        if literals >= MORE {
            self.put_length(literals - MORE);
        }
        self.copy_literals(literals);
        let offset = ((found.start - found.from) as u16).to_le_bytes();
        self.push(offset[0]);
        self.push(offset[1]);
        if rest >= MORE {
            self.put_length(rest - MORE);
        }
        self.anchor = found.start + len;
    }

    /// Copies 16 bytes at a time; mostly one step is enough.
    #[inline(always)]
    fn copy_literals(&mut self, literals: usize) {
        let mut done = 0;
        loop {
            // SAFETY: a match begins at most at START_LIMIT, 16 bytes before the page's end, and
            // these literals lie before one; the block has 64 bytes of slack.
            unsafe {
                let from = self.page.as_ptr().add(self.anchor + done).cast::<u128>();
                let to = self
                    .out
                    .as_mut_ptr()
                    .add(self.written + done)
                    .cast::<u128>();
                to.write_unaligned(from.read_unaligned());
            }
            done += 16;
            if done >= literals {
                break;
            }
        }
        self.written += literals;
    }

    #[inline(always)]
    fn push(&mut self, byte: u8) {
        debug_assert!(self.written < self.out.len());
        // SAFETY: see `written`; the bound for a whole page is below the block's room.
        unsafe { *self.out.get_unchecked_mut(self.written) = byte };
        self.written += 1;
    }

    #[inline(always)]
    fn put_length(&mut self, mut rest: usize) {
        while rest >= 255 {
            self.push(255);
            rest -= 255;
        }
        self.push(rest as u8);
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        debug_assert!(at + 8 <= PAGE_BYTES);
        // SAFETY: positions looked at are at most START_LIMIT + 1, those in the table as well.
        unsafe { u64::from_le(self.page.as_ptr().add(at).cast::<u64>().read_unaligned()) }
    }

    /// Ends the block with the literals behind the last match.
    fn write_rest(mut self, limit: usize) -> Option<usize> {
        let literals = PAGE_BYTES - self.anchor;
        let lengths = if literals >= MORE {
            1 + (literals - MORE) / 255
        } else {
            0
        };
        if self.written + 1 + lengths + literals > limit {
            return None;
        }
        self.push((literals.min(MORE) << 4) as u8);
        if literals >= MORE {
            self.put_length(literals - MORE);
        }
        self.out[self.written..self.written + literals].copy_from_slice(&self.page[self.anchor..]);
        Some(self.written + literals)
    }
}

/// The hash of the first five bytes of `word`, as LZ4 itself computes it for larger blocks.
#[inline(always)]
fn hash(word: u64) -> usize {
    ((word << 24).wrapping_mul(0x9e37_79b1_85eb_ca87) >> (64 - TABLE_BITS)) as usize
}

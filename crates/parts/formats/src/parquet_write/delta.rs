//! Encodes integers of 32 and 64 bits in DELTA_BINARY_PACKED (parquet-format, Encodings, 5).

use super::pack::{CHUNK, pack_wide, pack_words};
use super::varint;
use crate::vectorised::{Work, vectorised};

/// The values of a block and the number of its miniblocks. Every other writer uses these numbers,
/// and some readers expect them.
const BLOCK: usize = 128;
const MINIBLOCKS: usize = BLOCK / CHUNK;
/// Room for the longest varint, the widths, and a block of differences of 64 bits.
const BLOCK_BYTES: usize = 10 + MINIBLOCKS + 8 * BLOCK;

/// Integers that are encoded by their differences. These wrap around within the type's own width,
/// as readers add them up.
pub(super) trait Integer: Copy + Ord + Default {
    fn minus(self, other: Self) -> Self;
    /// The distance to another one that is not larger.
    fn above(self, least: Self) -> u64;
    fn wide(self) -> i64;
}

impl Integer for i32 {
    #[inline(always)]
    fn minus(self, other: i32) -> i32 {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn above(self, least: i32) -> u64 {
        u64::from(self.wrapping_sub(least) as u32)
    }

    #[inline(always)]
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Integer for i64 {
    #[inline(always)]
    fn minus(self, other: i64) -> i64 {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn above(self, least: i64) -> u64 {
        self.wrapping_sub(least) as u64
    }

    #[inline(always)]
    fn wide(self) -> i64 {
        self
    }
}

/// Appends all `values` as one page body.
pub(super) fn encode<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    vectorised(Encode { values, out });
}

struct Encode<'a, T> {
    values: &'a [T],
    out: &'a mut Vec<u8>,
}

impl<T: Integer> Work for Encode<'_, T> {
    type Output = ();

    #[inline(always)]
    fn work(self) {
        let Encode { values, out } = self;
        varint::unsigned(out, BLOCK as u64);
        varint::unsigned(out, MINIBLOCKS as u64);
        varint::unsigned(out, values.len() as u64);
        varint::zigzag(out, values.first().map_or(0, |first| first.wide()));
        let Some(differences) = values.len().checked_sub(1) else {
            return;
        };
        let mut deltas = [T::default(); BLOCK];
        let mut at = 0;
        while at + BLOCK <= differences {
            let (before, after) = (&values[at..at + BLOCK], &values[at + 1..at + 1 + BLOCK]);
            for (delta, (&before, &after)) in deltas.iter_mut().zip(before.iter().zip(after)) {
                *delta = after.minus(before);
            }
            encode_block(&deltas, BLOCK, out);
            at += BLOCK;
        }
        let rest = differences - at;
        if rest > 0 {
            for (delta, pair) in deltas.iter_mut().zip(values[at..].windows(2)) {
                *delta = pair[1].minus(pair[0]);
            }
            // Padding that is equal to the least difference is packed as zeros.
            let least = deltas[..rest].iter().copied().min().unwrap_or_default();
            deltas[rest..].fill(least);
            encode_block(&deltas, rest, out);
        }
    }
}

/// Appends one block, of whose differences the first `used` are values and the rest is padding.
#[inline(always)]
fn encode_block<T: Integer>(deltas: &[T; BLOCK], used: usize, out: &mut Vec<u8>) {
    let least = deltas
        .iter()
        .fold(deltas[0], |least, &delta| least.min(delta));
    varint::zigzag(out, least.wide());
    let mut above = [0u64; BLOCK];
    for (above, &delta) in above.iter_mut().zip(deltas) {
        *above = delta.above(least);
    }
    let mut narrow = [0u32; BLOCK];
    for (narrow, &above) in narrow.iter_mut().zip(&above) {
        *narrow = above as u32;
    }
    let mut packed = [0u8; BLOCK_BYTES];
    let mut at = MINIBLOCKS;
    let miniblocks = above
        .as_chunks::<CHUNK>()
        .0
        .iter()
        .zip(narrow.as_chunks::<CHUNK>().0);
    // Miniblocks that hold no value have a width and nothing else.
    for (i, (above, narrow)) in miniblocks.enumerate().take(used.div_ceil(CHUNK)) {
        let width = 64
            - above
                .iter()
                .fold(0, |bits, &value| bits | value)
                .leading_zeros();
        packed[i] = width as u8;
        if width <= 32 {
            pack_words(narrow, width, &mut packed[at..]);
        } else {
            pack_wide(above, width, &mut packed[at..]);
        }
        at += CHUNK / 8 * width as usize;
    }
    out.extend_from_slice(&packed[..at]);
}

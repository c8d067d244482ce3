//! Encodes dictionary codes in the hybrid of RLE and bit-packing (parquet-format, Encodings, RLE =
//! 3).
//!
//! Equal values become a run where at least [`CHUNK`] of them stand together; everything between
//! two such runs is one bit-packed run.

use super::pack::{CHUNK, pack_bytes, pack_words};
use super::varint;
use crate::vectorised::{Work, vectorised};

/// How many bits codes below `distinct` need. It is 0 for a single code.
pub fn bits_for(distinct: usize) -> u32 {
    match distinct {
        0 | 1 => 0,
        n => usize::BITS - (n - 1).leading_zeros(),
    }
}

/// A code of a dictionary, in one of the widths that columns have.
pub(super) trait Code: Copy + Eq + Into<u32> {
    /// Packs codes, with the last eight filled up by zeros, and returns how many bytes that was.
    /// `out` has [`SPARE_BYTES`] more than that.
    fn pack(codes: &[Self], width: u32, out: &mut [u8]) -> usize;
}

/// How many bytes [`Code::pack`] may write behind its last one, which is a chunk of the widest
/// codes.
const SPARE_BYTES: usize = 4 * CHUNK;

impl Code for u8 {
    #[inline(always)]
    fn pack(codes: &[u8], width: u32, out: &mut [u8]) -> usize {
        pack_bytes(codes, width, out)
    }
}

impl Code for u32 {
    #[inline(always)]
    fn pack(codes: &[u32], width: u32, out: &mut [u8]) -> usize {
        let bytes = CHUNK / 8 * width as usize;
        let (chunks, rest) = codes.as_chunks::<CHUNK>();
        let mut at = 0;
        for chunk in chunks {
            pack_words(chunk, width, &mut out[at..]);
            at += bytes;
        }
        if !rest.is_empty() {
            let mut chunk = [0; CHUNK];
            chunk[..rest.len()].copy_from_slice(rest);
            pack_words(&chunk, width, &mut out[at..]);
            at += rest.len().div_ceil(8) * width as usize;
        }
        at
    }
}

/// Appends `codes`, each below `1 << width`, to `out`.
pub(super) fn encode<C: Code>(codes: &[C], width: u32, out: &mut Vec<u8>) {
    // A single entry needs no bits, but readers expect a run for it nevertheless.
    if width == 0 {
        if !codes.is_empty() {
            run_of_one(0, codes.len(), 0, out);
        }
        return;
    }
    vectorised(Encode { codes, width, out });
}

struct Encode<'a, C> {
    codes: &'a [C],
    width: u32,
    out: &'a mut Vec<u8>,
}

impl<C: Code> Work for Encode<'_, C> {
    type Output = ();

    #[inline(always)]
    fn work(self) {
        let Encode { codes, width, out } = self;
        let mut at = 0;
        while at < codes.len() {
            let equal = equal_chunks(&codes[at..]);
            if equal > 0 {
                let value = codes[at];
                let mut n = equal * CHUNK;
                // A run that reaches the last values, which are less than a chunk, takes them too
                // if they are the same.
                let rest = &codes[at + n..];
                if rest.len() < CHUNK && rest.iter().all(|&code| code == value) {
                    n += rest.len();
                }
                run_of_one(value.into(), n, width, out);
                at += n;
                continue;
            }
            let mixed = codes[at..]
                .chunks(CHUNK)
                .position(|chunk| chunk.len() == CHUNK && all_equal(chunk))
                .map_or(codes.len() - at, |chunks| chunks * CHUNK);
            // Packed values come in eights. Only the last run can end within one, because all
            // others end with a chunk, so the zeros behind it are never taken for rows.
            varint::unsigned(out, (mixed.div_ceil(8) as u64) << 1 | 1);
            let start = out.len();
            out.resize(start + mixed.div_ceil(8) * width as usize + SPARE_BYTES, 0);
            let bytes = C::pack(&codes[at..at + mixed], width, &mut out[start..]);
            out.truncate(start + bytes);
            at += mixed;
        }
    }
}

/// How many whole chunks from the start hold one and the same value.
#[inline(always)]
fn equal_chunks<C: Code>(codes: &[C]) -> usize {
    let Some(&first) = codes.first() else {
        return 0;
    };
    codes
        .chunks_exact(CHUNK)
        .take_while(|chunk| chunk[0] == first && all_equal(chunk))
        .count()
}

#[inline(always)]
fn all_equal<C: Code>(chunk: &[C]) -> bool {
    // In most chunks the first and the last value differ, and no loop is needed.
    chunk[0] == chunk[CHUNK - 1] && chunk.iter().all(|&code| code == chunk[0])
}

fn run_of_one(value: u32, n: usize, width: u32, out: &mut Vec<u8>) {
    varint::unsigned(out, (n as u64) << 1);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

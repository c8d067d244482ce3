//! Packs values of a fixed number of bits, most significant bit first.
//!
//! Only the widths are used that the specification does not call deprecated: 1, 2, 4 and whole
//! bytes. They cost some bytes against exact widths and are several times cheaper to write and to
//! read.

use crate::vectorised::{Work, vectorised};

/// The narrowest of the used widths that holds values of so many bits.
pub(super) fn width_for(bits: u32) -> u32 {
    match bits {
        0 | 1 => 1,
        2 => 2,
        3 | 4 => 4,
        _ => bits.next_multiple_of(8),
    }
}

/// The code of five bits by which a header names a width.
pub(super) fn width_code(width: u32) -> u8 {
    match width {
        0 => 0,
        1..=24 => width as u8 - 1,
        32 => 27,
        40 => 28,
        48 => 29,
        56 => 30,
        _ => 31,
    }
}

/// How many bytes `count` packed values take.
pub(super) fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Appends the low `width` bits of each value; the last byte is filled with zeros.
pub(super) fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    vectorised(Pack { values, width, out });
}

struct Pack<'a> {
    values: &'a [u64],
    width: u32,
    out: &'a mut Vec<u8>,
}

impl Work for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn work(self) {
        let Pack { values, width, out } = self;
        match width {
            1 => bits::<8>(values, out),
            2 => bits::<4>(values, out),
            4 => bits::<2>(values, out),
            8 => bytes::<1>(values, out),
            16 => bytes::<2>(values, out),
            24 => bytes::<3>(values, out),
            32 => bytes::<4>(values, out),
            40 => bytes::<5>(values, out),
            48 => bytes::<6>(values, out),
            56 => bytes::<7>(values, out),
            _ => bytes::<8>(values, out),
        }
    }
}

#[inline(always)]
fn bits<const PER_BYTE: usize>(values: &[u64], out: &mut Vec<u8>) {
    let width = 8 / PER_BYTE;
    let join = |group: &[u64]| {
        let mut byte = 0;
        for (i, &value) in group.iter().enumerate() {
            byte |= (value as u8) << (8 - width - i * width);
        }
        byte
    };
    let groups = values.chunks_exact(PER_BYTE);
    let rest = groups.remainder();
    let begin = out.len();
    out.resize(begin + values.len() / PER_BYTE, 0);
    for (byte, group) in out[begin..].iter_mut().zip(groups) {
        *byte = join(group);
    }
    if !rest.is_empty() {
        out.push(join(rest));
    }
}

#[inline(always)]
fn bytes<const BYTES: usize>(values: &[u64], out: &mut Vec<u8>) {
    let begin = out.len();
    out.resize(begin + values.len() * BYTES, 0);
    for (place, &value) in out[begin..].chunks_exact_mut(BYTES).zip(values) {
        place.copy_from_slice(&(value << (64 - 8 * BYTES)).to_be_bytes()[..BYTES]);
    }
}

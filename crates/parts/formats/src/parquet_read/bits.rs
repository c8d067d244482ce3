//! Unpacks little-endian bit-packed integers, 32 at a time, by one function for each width.

use super::ReadError;

/// How many values are unpacked together.
pub(super) const GROUP: usize = 32;
/// Bytes that [`Unpack`] may read behind the `4 * width` bytes of its last group.
pub(super) const SLACK_BYTES: usize = 64;
/// The widest code that the format knows.
pub(super) const MAX_WIDTH: u8 = 32;

/// Unpacks groups from the front of a slice that has at least `4 * width` bytes for each of them
/// and [`SLACK_BYTES`] more.
pub(super) type Unpack = fn(&[u8], &mut [[u32; GROUP]]);

/// With the width known to the compiler each value is one load, one shift and one mask.
fn unpack<const WIDTH: usize>(packed: &[u8], out: &mut [[u32; GROUP]]) {
    let mask = ((1u64 << WIDTH) - 1) as u32;
    for (at, group) in out.iter_mut().enumerate() {
        let start = at * 4 * WIDTH;
        let packed = &packed[start..start + 4 * WIDTH + 8];
        for (i, value) in group.iter_mut().enumerate() {
            let bit = i * WIDTH;
            let mut word = [0u8; 8];
            word.copy_from_slice(&packed[bit / 8..bit / 8 + 8]);
            *value = (u64::from_le_bytes(word) >> (bit % 8)) as u32 & mask;
        }
    }
}

macro_rules! table {
    ($($width:literal)*) => { [$(unpack::<$width>),*] };
}

static UNPACK: [Unpack; MAX_WIDTH as usize + 1] = table!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);

/// The function for `width` bits per value.
///
/// # Errors
/// A width above 32 is damage: no dictionary has that many entries.
pub(super) fn unpacker(width: u8) -> Result<Unpack, ReadError> {
    if let Some(fast) = wide_unpacker(width) {
        return Ok(fast);
    }
    // Widths that no wide function has, and machines without the instructions.
    UNPACK
        .get(usize::from(width))
        .copied()
        .ok_or_else(|| ReadError::damaged(format!("bit width {width} is above {MAX_WIDTH}")))
}

/// The highest of some codes, or 0 if there are none.
pub(super) fn highest(codes: &[u32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(highest) =
        super::bits_avx512::highest(codes).or_else(|| super::bits_avx2::highest(codes))
    {
        return highest;
    }
    codes.iter().copied().max().unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
fn wide_unpacker(width: u8) -> Option<Unpack> {
    super::bits_avx512::unpacker(width).or_else(|| super::bits_avx2::unpacker(width))
}

#[cfg(not(target_arch = "x86_64"))]
fn wide_unpacker(_: u8) -> Option<Unpack> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The obvious way, bit by bit.
    fn slow(packed: &[u8], width: usize, index: usize) -> u32 {
        let mut value = 0u32;
        for bit in 0..width {
            let at = index * width + bit;
            value |= u32::from(packed[at / 8] >> (at % 8) & 1) << bit;
        }
        value
    }

    #[test]
    fn every_width_agrees_with_bit_by_bit() {
        let packed: Vec<u8> = (0..3 * 4 * 32 + SLACK_BYTES)
            .map(|i| (i * 151 + 89) as u8)
            .collect();
        for width in 0..=MAX_WIDTH {
            let portable = [UNPACK[usize::from(width)], unpacker(width).unwrap()];
            #[cfg(target_arch = "x86_64")]
            let wide = super::super::bits_avx2::unpacker(width);
            #[cfg(not(target_arch = "x86_64"))]
            let wide = None;
            for unpack in portable.into_iter().chain(wide) {
                let size = 3 * 4 * usize::from(width) + SLACK_BYTES;
                let mut out = [[0; GROUP]; 3];
                unpack(&packed[..size], &mut out);
                for (i, value) in out.as_flattened().iter().enumerate() {
                    let expected = slow(&packed, usize::from(width), i);
                    assert_eq!(*value, expected, "width {width} at {i}");
                }
            }
        }
        assert!(unpacker(33).is_err());
    }
}

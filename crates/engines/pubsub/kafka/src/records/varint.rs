//! Varints in zigzag form, as records have them.

use bytes::{Buf, BufMut, Bytes};

/// Reads a number of at most 64 bits; `None` if the bytes end or the number is longer.
pub fn read(bytes: &mut Bytes) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = bytes.try_get_u8().ok()?;
        // The tenth byte has room for one bit.
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    None
}

/// Writes a number.
pub fn write(into: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        into.put_u8((rest as u8) | 0x80);
        rest >>= 7;
    }
    into.put_u8(rest as u8);
}

/// How many bytes [`write`] takes for a number.
pub fn length(value: i64) -> usize {
    let rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    (64 - (rest | 1).leading_zeros() as usize).div_ceil(7)
}

//! Encodes signed integers as zigzagged base-128 varints, many at a time.

use crate::orc_write::protobuf::{varint, zigzag};

/// The most bits of a zigzagged value whose varint has at most eight bytes.
const SHORT_BITS: u32 = 56;

/// The bytes of a varint, the first one lowest, and how many there are. `None` if there are more
/// than eight.
#[inline(always)]
pub(super) fn short(value: i64) -> Option<(u64, usize)> {
    let coded = zigzag(value);
    let bits = 64 - (coded | 1).leading_zeros();
    if bits > SHORT_BITS {
        return None;
    }
    // Bits divided by seven and rounded up, without a division; exact up to 56 bits.
    let bytes = (bits as usize * 9 + 64) >> 6;
    // Spreads groups of seven bits to bytes, halves first.
    let spread = (coded & 0x00ff_ffff_f000_0000) << 4 | coded & 0x0fff_ffff;
    let spread = (spread & 0x0fff_c000_0fff_c000) << 2 | spread & 0x3fff_0000_3fff;
    let spread = (spread & 0x3f80_3f80_3f80_3f80) << 1 | spread & 0x007f_007f_007f_007f;
    let more = 0x8080_8080_8080_8080 & ((1u64 << (8 * bytes - 8)) - 1);
    Some((spread | more, bytes))
}

/// Appends the varints of all values, in their order.
pub(super) fn append(values: &[i64], out: &mut Vec<u8>) {
    const GROUP: usize = 256;
    for group in values.chunks(GROUP) {
        let begin = out.len();
        // Each value writes eight bytes, of which the next one overwrites what is too much.
        out.resize(begin + GROUP * 8, 0);
        let mut room = &mut out[begin..];
        let mut written = 0;
        let mut done = 0;
        for &value in group {
            let Some((bytes, length)) = short(value) else {
                break;
            };
            room[..8].copy_from_slice(&bytes.to_le_bytes());
            room = &mut room[length..];
            written += length;
            done += 1;
        }
        out.truncate(begin + written);
        // From the first long value on the group goes the slow way.
        for &value in &group[done..] {
            varint(out, zigzag(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(values: &[i64]) {
        let (mut quick, mut slow) = (Vec::new(), Vec::new());
        append(values, &mut quick);
        for &value in values {
            varint(&mut slow, zigzag(value));
        }
        assert_eq!(quick, slow, "{values:?}");
    }

    #[test]
    fn all_lengths_are_right() {
        for bits in 0..64 {
            let value = 1i64 << bits;
            check(&[value, !value, value.wrapping_sub(1), value.wrapping_neg()]);
        }
    }

    proptest! {
        #[test]
        fn they_are_the_varints_of_protocol_buffers(
            values in prop::collection::vec((any::<i64>(), 0u32..64).prop_map(|(v, s)| v >> s), 0..600),
        ) {
            check(&values);
        }
    }
}

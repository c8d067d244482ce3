//! CRC32C (Castagnoli; RFC 3720, section B.4) of everything that is stored or sent.
//!
//! This is the one place that chooses the code which computes it. Where the processor has 512-bit
//! carry-less multiplications, folding with them checks three to five times the bytes a second of
//! three interleaved CRC instructions of SSE 4.2. The library looks at the processor, so callers do
//! not.
//!
//! ```
//! let whole = dyno_checksum::crc32c(b"123456789");
//! assert_eq!(whole, 0xe306_9283);
//! assert_eq!(dyno_checksum::append(dyno_checksum::crc32c(b"1234"), b"56789"), whole);
//! ```

use crc_fast::{CrcAlgorithm, Digest};

/// The checksum of `bytes`, whole.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The checksum of a text whose beginning has the checksum `crc` and is followed by `bytes`.
#[must_use]
pub fn append(crc: u32, bytes: &[u8]) -> u32 {
    // The library's state is the sum before its last step, which inverts all bits.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Bit by bit, as the polynomial is written: 0x1edc6f41, reflected.
    fn by_bits(crc: u32, bytes: &[u8]) -> u32 {
        let mut state = !crc;
        for byte in bytes {
            state ^= u32::from(*byte);
            for _ in 0..8 {
                state = (state >> 1) ^ (0x82f6_3b78 & (state & 1).wrapping_neg());
            }
        }
        !state
    }

    #[test]
    fn examples_of_the_specification_hold() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        // RFC 3720, section B.4, whose sums are printed with their bytes in the order of the wire.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&ascending), 0x46dd_794e);
        assert_eq!(crc32c(&descending), 0x113f_db5c);
        assert_eq!(crc32c(&[]), 0);
    }

    #[test]
    fn every_short_length_and_alignment_is_right() {
        let bytes: Vec<u8> = (0..1_200_u32).map(|i| ((i * i) >> 3) as u8).collect();
        for from in 0..16 {
            for length in 0..600 {
                let part = &bytes[from..from + length];
                assert_eq!(crc32c(part), by_bits(0, part), "{length} bytes from {from}");
                assert_eq!(
                    append(77, part),
                    by_bits(77, part),
                    "{length} bytes from {from}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_whole(bytes in vec(any::<u8>(), 0..20_000), at in any::<prop::sample::Index>()) {
            let at = at.index(bytes.len() + 1);
            let whole = by_bits(0, &bytes);
            prop_assert_eq!(crc32c(&bytes), whole);
            prop_assert_eq!(append(crc32c(&bytes[..at]), &bytes[at..]), whole);
        }
    }
}

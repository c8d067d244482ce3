//! CRC32C (Castagnoli, RFC 3720 appendix B.4) of a page. Has `unsafe`: carry-less multiplication on
//! vectors, where the processor has it.

use crate::lz4::Page;

/// CRC32C of all bytes of `page`.
#[inline(always)]
pub fn of_page(page: &Page) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("vpclmulqdq") {
        // SAFETY: the processor has the instructions.
        return unsafe { folding::of_page(page) };
    }
    dyno_checksum::crc32c(page)
}

/// CRC32C of `bytes`.
pub fn of_bytes(bytes: &[u8]) -> u32 {
    dyno_checksum::crc32c(bytes)
}

/// Folding (Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel
/// 2009) with vectors of 64 bytes: 256 bytes become congruent to the next 256 by two multiplications
/// of each 16; what is left in the end is 64 bytes with the checksum of the whole page, which the
/// ordinary instruction takes.
#[cfg(target_arch = "x86_64")]
mod folding {
    use std::arch::x86_64::*;

    use crate::lz4::Page;

    /// The polynomial, bits reversed.
    const POLYNOMIAL: u32 = 0x82f6_3b78;

    /// x to the `power`, modulo the polynomial, bits reversed: lowest power in the highest bit.
    const fn x_to_the(power: u32) -> u32 {
        let mut value = 1u32 << 31;
        let mut at = 0;
        while at < power {
            value = value >> 1 ^ if value & 1 == 1 { POLYNOMIAL } else { 0 };
            at += 1;
        }
        value
    }

    /// Multipliers that move 16 bytes by `bits`, for the lower and the upper half. One bit less
    /// than the distance, since a product of reversed factors comes out shifted by one; 32 more or
    /// less for the place of each half and for a factor that fills half of 64 bits.
    const fn multipliers(bits: u32) -> (i64, i64) {
        (
            x_to_the(bits + 32 - 1) as i64,
            x_to_the(bits - 32 - 1) as i64,
        )
    }

    const BY_256: (i64, i64) = multipliers(256 * 8);
    const BY_64: (i64, i64) = multipliers(64 * 8);

    #[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
    fn fold(sum: __m512i, next: __m512i, by: __m512i) -> __m512i {
        let low = _mm512_clmulepi64_epi128::<0x00>(sum, by);
        let high = _mm512_clmulepi64_epi128::<0x11>(sum, by);
        // All three at once, xor.
        _mm512_ternarylogic_epi64::<0x96>(low, high, next)
    }

    #[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
    pub fn of_page(page: &Page) -> u32 {
        let spread =
            |(low, high): (i64, i64)| _mm512_set_epi64(high, low, high, low, high, low, high, low);
        let vectors = page.as_chunks::<64>().0;
        // SAFETY: 64 bytes each.
        let load = |at: usize| unsafe { _mm512_loadu_si512(vectors[at].as_ptr().cast()) };
        let mut sums = [load(0), load(1), load(2), load(3)];
        // The register of a CRC begins as ones, which is the same as turning the first bits over.
        sums[0] = _mm512_xor_si512(sums[0], first_bits(0xffff_ffff));
        let by = spread(BY_256);
        for at in (4..vectors.len()).step_by(4) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = fold(*sum, load(at + lane), by);
            }
        }
        let by = spread(BY_64);
        let [first, rest @ ..] = sums;
        let sum = rest
            .into_iter()
            .fold(first, |sum, next| fold(sum, next, by));
        let mut words = [0u64; 8];
        // SAFETY: 64 bytes.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), sum) };
        let end = words
            .into_iter()
            .fold(0, |crc, word| _mm_crc32_u64(crc, word));
        !(end as u32)
    }

    /// A vector whose first 32 bits are `bits`, the others 0.
    #[target_feature(enable = "avx512f")]
    fn first_bits(bits: u32) -> __m512i {
        _mm512_zextsi128_si512(_mm_cvtsi32_si128(bits.cast_signed()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lz4::PAGE_BYTES;

    #[test]
    fn the_check_values_are_those_of_the_rfc() {
        assert_eq!(of_bytes(b"123456789"), 0xe306_9283);
        assert_eq!(of_bytes(&[0; 32]), 0x8a91_36aa);
    }

    proptest! {
        #[test]
        fn a_page_has_the_sum_of_its_bytes(
            piece in proptest::collection::vec(any::<u8>(), 1..500),
            from in 0..PAGE_BYTES,
        ) {
            let mut page: Page = [0; PAGE_BYTES];
            for (place, byte) in page[from..].iter_mut().zip(piece.into_iter().cycle()) {
                *place = byte;
            }
            prop_assert_eq!(of_page(&page), of_bytes(&page));
        }
    }
}

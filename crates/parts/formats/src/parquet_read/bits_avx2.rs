//! Unpacking on AVX2 with byte shuffles, eight values in six instructions.
//!
//! This module is `unsafe` because it uses instructions that not every machine has.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_loadu_si256, _mm256_set_m128i,
    _mm256_set1_epi32, _mm256_shuffle_epi8, _mm256_srlv_epi32, _mm256_storeu_si256,
};

use super::bits::{GROUP, SLACK_BYTES, Unpack};
use super::bits_shuffled::{MAX_WIDTH, byte_indexes, shifts};

/// How many values of 32 bits a register has.
const LANES: usize = 8;
/// How many values one half of it has. A shuffle does not cross the halves, so each half is loaded
/// from its own address.
const TOGETHER: usize = LANES / 2;

#[target_feature(enable = "avx2")]
fn unpack<const WIDTH: usize>(packed: &[u8], out: &mut [[u32; GROUP]]) {
    assert!(packed.len() >= out.len() * 4 * WIDTH + SLACK_BYTES);
    // SAFETY: the arrays are 32 bytes, as many as are loaded.
    let (indexes, shifts): (__m256i, __m256i) = unsafe {
        let (indexes, shifts) = (
            const { byte_indexes::<32>(WIDTH, TOGETHER) },
            const { shifts::<LANES>(WIDTH) },
        );
        (
            _mm256_loadu_si256(indexes.as_ptr().cast()),
            _mm256_loadu_si256(shifts.as_ptr().cast()),
        )
    };
    let mask = _mm256_set1_epi32((1 << WIDTH) - 1);
    let eights = out.as_flattened_mut().as_chunks_mut::<LANES>().0;
    for (at, eight) in eights.iter_mut().enumerate() {
        // SAFETY: the last eight begin `WIDTH` bytes before the end of the groups, so what is
        // loaded, 16 bytes from at most `WIDTH` bytes behind that, ends within `SLACK_BYTES`
        // behind them; the store fills `eight` exactly.
        unsafe {
            let begin = packed.as_ptr().add(at * WIDTH);
            let bytes = _mm256_set_m128i(
                _mm_loadu_si128(begin.add(const { TOGETHER * WIDTH / 8 }).cast()),
                _mm_loadu_si128(begin.cast()),
            );
            let lanes = _mm256_srlv_epi32(_mm256_shuffle_epi8(bytes, indexes), shifts);
            _mm256_storeu_si256(eight.as_mut_ptr().cast(), _mm256_and_si256(lanes, mask));
        }
    }
}

fn checked<const WIDTH: usize>(packed: &[u8], out: &mut [[u32; GROUP]]) {
    // SAFETY: `unpacker` hands this function out only on machines that have the instructions.
    unsafe { unpack::<WIDTH>(packed, out) }
}

macro_rules! table {
    ($($width:literal)*) => { [$(checked::<$width>),*] };
}

static UNPACK: [Unpack; MAX_WIDTH] =
    table!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25);

/// The function for `width` bits per value, or `None` if this machine or this module has none.
pub(super) fn unpacker(width: u8) -> Option<Unpack> {
    if !is_x86_feature_detected!("avx2") {
        return None;
    }
    UNPACK.get(usize::from(width).checked_sub(1)?).copied()
}

/// A plain loop, which the compiler turns into comparisons of eight codes at a time.
#[target_feature(enable = "avx2")]
fn highest_of(codes: &[u32]) -> u32 {
    codes.iter().copied().max().unwrap_or(0)
}

/// The highest of some codes, or `None` if this machine lacks the instructions.
pub(super) fn highest(codes: &[u32]) -> Option<u32> {
    if !is_x86_feature_detected!("avx2") {
        return None;
    }
    // SAFETY: the instructions are there.
    Some(unsafe { highest_of(codes) })
}

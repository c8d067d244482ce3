//! Unpacking on AVX-512 with byte permutes (VBMI), sixteen values in four instructions.
//!
//! This module is `unsafe` because it uses instructions that not every machine has.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_loadu_si512, _mm512_permutexvar_epi8, _mm512_set1_epi32,
    _mm512_srlv_epi32, _mm512_storeu_si512,
};

use super::bits::{GROUP, SLACK_BYTES, Unpack};
use super::bits_shuffled::{MAX_WIDTH, byte_indexes, shifts};

/// How many values of 32 bits a register has.
const LANES: usize = 16;

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn unpack<const WIDTH: usize>(packed: &[u8], out: &mut [[u32; GROUP]]) {
    assert!(packed.len() >= out.len() * 4 * WIDTH + SLACK_BYTES);
    // SAFETY: the arrays are 64 bytes, as many as are loaded.
    let (indexes, shifts) = unsafe {
        let (indexes, shifts) = (
            const { byte_indexes::<64>(WIDTH, LANES) },
            const { shifts::<LANES>(WIDTH) },
        );
        (load(indexes.as_ptr()), load(shifts.as_ptr().cast()))
    };
    let mask = _mm512_set1_epi32((1 << WIDTH) - 1);
    let halves = out.as_flattened_mut().as_chunks_mut::<LANES>().0;
    for (at, half) in halves.iter_mut().enumerate() {
        // SAFETY: the last half begins `2 * WIDTH` bytes before the end of the groups, so the
        // 64 bytes loaded end within `SLACK_BYTES` behind them; the store fills `half` exactly.
        unsafe {
            let bytes = load(packed.as_ptr().add(at * 2 * WIDTH));
            let lanes = _mm512_srlv_epi32(_mm512_permutexvar_epi8(indexes, bytes), shifts);
            _mm512_storeu_si512(half.as_mut_ptr().cast(), _mm512_and_si512(lanes, mask));
        }
    }
}

/// # Safety
/// 64 bytes at `at` can be read.
#[target_feature(enable = "avx512f")]
unsafe fn load(at: *const u8) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe { _mm512_loadu_si512(at.cast()) }
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
    let able = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi");
    if !able {
        return None;
    }
    UNPACK.get(usize::from(width).checked_sub(1)?).copied()
}

/// A plain loop, which the compiler turns into comparisons of sixteen codes at a time.
#[target_feature(enable = "avx512f")]
fn highest_of(codes: &[u32]) -> u32 {
    codes.iter().copied().max().unwrap_or(0)
}

/// The highest of some codes, or `None` if this machine lacks the instructions.
pub(super) fn highest(codes: &[u32]) -> Option<u32> {
    if !is_x86_feature_detected!("avx512f") {
        return None;
    }
    // SAFETY: the instructions are there.
    Some(unsafe { highest_of(codes) })
}

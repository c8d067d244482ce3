//! Unpacking on AVX-512 with byte permutes (VBMI), sixteen values in four instructions.
//!
//! This module is `unsafe` because instructions are used that not every machine has.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_loadu_si512, _mm512_permutexvar_epi8, _mm512_set1_epi32,
    _mm512_srlv_epi32, _mm512_storeu_si512,
};

use super::bits::{GROUP, SLACK_BYTES, Unpack};

/// Values in a register.
const LANES: usize = 16;
/// A value and the up to 7 bits before it in its first byte fill a 32-bit lane.
const MAX_WIDTH: usize = 25;

/// For each lane the four bytes that its value lies in.
const fn byte_indexes(width: usize) -> [u8; 64] {
    let mut indexes = [0; 64];
    let mut at = 0;
    while at < 64 {
        indexes[at] = (at / 4 * width / 8 + at % 4) as u8;
        at += 1;
    }
    indexes
}

/// For each lane how many bits of its first byte belong to the value before.
const fn shifts(width: usize) -> [u32; LANES] {
    let mut shifts = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        shifts[lane] = (lane * width % 8) as u32;
        lane += 1;
    }
    shifts
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn unpack<const WIDTH: usize>(packed: &[u8], out: &mut [[u32; GROUP]]) {
    assert!(packed.len() >= out.len() * 4 * WIDTH + SLACK_BYTES);
    // SAFETY: the arrays are 64 bytes, as many as are loaded.
    let (indexes, shifts) = unsafe {
        let (indexes, shifts) = (const { byte_indexes(WIDTH) }, const { shifts(WIDTH) });
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

/// The function for `width` bits per value, when this machine and this module have one.
pub(super) fn unpacker(width: u8) -> Option<Unpack> {
    let able = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi");
    if !able {
        return None;
    }
    UNPACK.get(usize::from(width).checked_sub(1)?).copied()
}

/// The plain loop, which the compiler turns into comparisons of sixteen codes at a time.
#[target_feature(enable = "avx512f")]
fn highest_of(codes: &[u32]) -> u32 {
    codes.iter().copied().max().unwrap_or(0)
}

/// The highest of some codes, when this machine has the instructions.
pub(super) fn highest(codes: &[u32]) -> Option<u32> {
    if !is_x86_feature_detected!("avx512f") {
        return None;
    }
    // SAFETY: the instructions are there.
    Some(unsafe { highest_of(codes) })
}

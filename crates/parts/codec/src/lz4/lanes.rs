//! Sixteen bytes at a time: a plain form, and one with vector instructions. Both give the same
//! results. Has `unsafe`: vector instructions on memory that callers vouch for.

/// One way of doing it.
pub(super) trait Lanes: Copy {
    /// How many of the 16 bytes at `a` and `b` are equal, from the first on.
    ///
    /// # Safety
    /// Both may be read for 16 bytes.
    unsafe fn equal(a: *const u8, b: *const u8) -> usize;

    /// Writes the `offset` bytes at `from` again and again, up to `to + len + 15`.
    ///
    /// # Safety
    /// `from` may be read for 16 bytes, `to` written for `len + 15`, and `0 < offset < 16`.
    unsafe fn repeat(from: *const u8, to: *mut u8, offset: usize, len: usize);
}

/// Without vector instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

impl Lanes for Plain {
    #[inline(always)]
    unsafe fn equal(a: *const u8, b: *const u8) -> usize {
        // SAFETY: the caller's word.
        let (x, y) = unsafe {
            (
                a.cast::<u128>().read_unaligned(),
                b.cast::<u128>().read_unaligned(),
            )
        };
        (u128::from_le(x) ^ u128::from_le(y)).trailing_zeros() as usize / 8
    }

    #[inline(always)]
    unsafe fn repeat(from: *const u8, to: *mut u8, offset: usize, len: usize) {
        for at in 0..len {
            // SAFETY: the caller's word; what is read at `at >= offset` was written before.
            unsafe { to.add(at).write(from.add(at % offset).read()) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    use super::Lanes;

    /// SSE and SSSE3; its users are compiled for AVX2, which has both.
    #[derive(Debug, Clone, Copy)]
    pub(in super::super) struct Wide;

    /// For each offset, which of 16 bytes comes where when they repeat.
    static ORDER: [[u8; 16]; 16] = {
        let mut order = [[0; 16]; 16];
        let mut offset = 1;
        while offset < 16 {
            let mut at = 0;
            while at < 16 {
                order[offset][at] = (at % offset) as u8;
                at += 1;
            }
            offset += 1;
        }
        order
    };

    /// The largest multiple of each offset in 16 bytes: so far on, the same 16 bytes come again.
    static STRIDE: [u8; 16] = [
        16, 16, 16, 15, 16, 15, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15,
    ];

    impl Lanes for Wide {
        #[inline(always)]
        unsafe fn equal(a: *const u8, b: *const u8) -> usize {
            // SAFETY: the caller's word; SSE2 is part of the architecture.
            let same = unsafe {
                _mm_movemask_epi8(_mm_cmpeq_epi8(
                    _mm_loadu_si128(a.cast()),
                    _mm_loadu_si128(b.cast()),
                ))
            };
            (!same).trailing_zeros() as usize
        }

        #[inline(always)]
        unsafe fn repeat(from: *const u8, to: *mut u8, offset: usize, len: usize) {
            // SAFETY: the caller's word; the tables have a row for each offset below 16; users are
            // compiled for AVX2.
            unsafe {
                let order = _mm_loadu_si128(ORDER.get_unchecked(offset).as_ptr().cast());
                let bytes = _mm_shuffle_epi8(_mm_loadu_si128(from.cast()), order);
                let stride = usize::from(*STRIDE.get_unchecked(offset));
                let mut at = 0;
                while at < len {
                    _mm_storeu_si128(to.add(at).cast(), bytes);
                    at += stride;
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use wide::Wide;

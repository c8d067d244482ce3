//! Compares sixteen bytes at a time, in a plain form and in one with vector instructions. Both
//! return the same results. Has `unsafe`: vector instructions on memory that the callers answer
//! for.

/// A way of comparing sixteen bytes.
pub(super) trait Lanes: Copy {
    /// How many of the 16 bytes at `a` and `b` are equal, counted from the first one.
    ///
    /// # Safety
    /// The caller guarantees that 16 bytes can be read at both addresses.
    unsafe fn equal(a: *const u8, b: *const u8) -> usize;
}

/// The form without vector instructions, for any processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

impl Lanes for Plain {
    #[inline(always)]
    unsafe fn equal(a: *const u8, b: *const u8) -> usize {
        // SAFETY: the caller guarantees it.
        let (x, y) = unsafe {
            (
                a.cast::<u128>().read_unaligned(),
                b.cast::<u128>().read_unaligned(),
            )
        };
        (u128::from_le(x) ^ u128::from_le(y)).trailing_zeros() as usize / 8
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    use super::Lanes;

    /// SSE2, which every processor of this architecture has.
    #[derive(Debug, Clone, Copy)]
    pub(in super::super) struct Wide;

    impl Lanes for Wide {
        #[inline(always)]
        unsafe fn equal(a: *const u8, b: *const u8) -> usize {
            // SAFETY: the caller guarantees it; SSE2 is part of the architecture.
            let same = unsafe {
                _mm_movemask_epi8(_mm_cmpeq_epi8(
                    _mm_loadu_si128(a.cast()),
                    _mm_loadu_si128(b.cast()),
                ))
            };
            (!same).trailing_zeros() as usize
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use wide::Wide;

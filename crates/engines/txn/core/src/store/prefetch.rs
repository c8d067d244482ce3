//! Prefetches memory into the processor's cache, and has the system fault pages in. This module has
//! `unsafe` code.

/// Begins to load the cache line of a value. Does nothing on processors without such an
/// instruction.
#[inline]
pub(super) fn prefetch<T>(at: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching has no effect on memory, and the place is a live reference's.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Has the system fault in the pages of this memory by one call, instead of by one fault for each
/// page at its first write. If the system refuses, the faults come as usual.
///
/// Huge pages (madvise) were tried twice instead. In a virtual machine whose host had yet to find
/// the memory, the slowest hundredth of calls took 10 to 15 ms. With regions of huge pages for
/// rows, values and index, once a store had grown past 16 MiB, TPC-C took a tenth more memory, and
/// the gain in processor time was within the noise. With a million rows and all of the allocator's
/// memory in huge pages the median latency under 1,024 transactions at once fell by a fifth, but
/// while the store grew the slowest hundredth waited 6 ms, and fewer transactions were done in all.
pub(super) fn populate(memory: &mut [u8]) {
    const PAGE: usize = 4096;
    let from = memory.as_mut_ptr();
    let before = from.addr() % PAGE;
    let bytes = (before + memory.len()).next_multiple_of(PAGE);
    // SAFETY: pages that a live slice lies on are mapped; the call writes no bytes, whatever else
    // has some there.
    unsafe {
        libc::madvise(
            from.wrapping_sub(before).cast(),
            bytes,
            libc::MADV_POPULATE_WRITE,
        )
    };
}

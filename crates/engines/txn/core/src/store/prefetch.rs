//! Asking for memory before it is needed, of the processor and of the system. This module has `unsafe` code.

/// Begins to load the cache line of a value. It changes nothing, and has no effect where the processor
/// has no such instruction.
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

/// Has the system give the pages of this memory now, in one call: page by page, as each is first written to, they cost
/// a fault each. It changes nothing, and where the system refuses, the faults come.
///
/// Huge pages (madvise) were tried instead: reads that miss the cache took a quarter less, but in a virtual machine whose
/// host had yet to find the memory the slowest hundredth of calls took 10 to 15 ms, and less was committed meanwhile.
pub(super) fn populate(memory: &mut [u8]) {
    const PAGE: usize = 4096;
    let from = memory.as_mut_ptr();
    let before = from.addr() % PAGE;
    let bytes = (before + memory.len()).next_multiple_of(PAGE);
    // SAFETY: pages that a live slice lies on are mapped; the call writes no bytes, whoever else has some there.
    unsafe {
        libc::madvise(
            from.wrapping_sub(before).cast(),
            bytes,
            libc::MADV_POPULATE_WRITE,
        )
    };
}

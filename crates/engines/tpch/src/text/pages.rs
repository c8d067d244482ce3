//! Asks the kernel for large pages. Comments lie all over the pool, and with pages of 4 KiB nearly every
//! one of them costs a walk through the page tables.
//!
//! Unsafe code: one system call, declared here because this crate has no dependencies.

/// What the kernel takes an advice for; also the smallest page of the systems that we run on.
#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 4096;

/// Asks for large pages under memory that has not been touched yet. It is advice: where the kernel
/// refuses, everything works as before, slower.
#[cfg(target_os = "linux")]
pub(super) fn prefer_large(memory: &mut [u8]) {
    use std::ffi::{c_int, c_void};
    const MADV_HUGEPAGE: c_int = 14;
    // SAFETY: the signature of madvise(2) in the C library that std links.
    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    let skipped = memory.as_ptr().align_offset(PAGE_BYTES).min(memory.len());
    let whole = &mut memory[skipped..];
    let length = whole.len() / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: the range lies within memory that we hold exclusively, and the advice changes no byte.
    unsafe { madvise(whole.as_mut_ptr().cast(), length, MADV_HUGEPAGE) };
}

/// Elsewhere there is nobody to ask.
#[cfg(not(target_os = "linux"))]
pub(super) fn prefer_large(_memory: &mut [u8]) {}

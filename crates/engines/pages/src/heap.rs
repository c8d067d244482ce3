//! The heap of the process. Has `unsafe`: a call of the C library.

/// Gives the system what is free in the heap and the allocator would keep. It takes milliseconds,
/// so it is for work that takes much memory once. Does nothing where the C library has no such
/// call.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and touches only memory that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

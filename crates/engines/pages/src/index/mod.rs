//! One word of 64 bits for each page: what it is and where it lies.

pub mod entry;
pub mod lock;

/// What the lock stands on; loom has its own in the test.
pub mod sync {
    pub use std::sync::atomic::{AtomicU64, Ordering};

    /// Turns of waiting in place before the processor is given to somebody else.
    const SPINS: u32 = 100;

    /// Waits until `bit` seems to be gone; the holder decodes or copies one page, a few microseconds.
    /// With reads alone, which do not take the line away from it.
    pub fn wait(entry: &AtomicU64, bit: u64) {
        let mut tries = 0;
        while entry.load(Ordering::Relaxed) & bit != 0 {
            if tries < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
            tries += 1;
        }
    }
}

//! One word of 64 bits for each page: what it is and where it lies.

pub mod entry;
pub mod lock;

/// What the lock stands on; loom has its own in the test.
pub mod sync {
    pub use std::sync::atomic::{AtomicU64, Ordering};
}

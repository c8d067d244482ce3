//! The index: one word of 64 bits for each page, which says what the page is and where it lies.

pub mod entry;
pub mod lock;

/// The atomics of the lock; its test puts loom's in their place.
pub mod sync {
    pub use std::sync::atomic::{AtomicU64, Ordering};
}

//! Shared-memory rings: bytes from one writer to one reader without the system's help, within a
//! process or between two.
//!
//! What it is: a memory with two rings, one for each direction ([`RingEnd`]), made by one side as a
//! sealed memfd and opened by the other. Frames travel on it as on a socket, so a frame may be
//! longer than the ring. The reader copies bytes to private memory before it looks at them, and
//! each end keeps its own position to itself: a hostile process on the other side can end the
//! connection and nothing more. An end that has nothing to do spins, then says in the ring that it
//! sleeps (on a `futex`, or in epoll until a byte comes on a socket), and is woken only if it said
//! so. What it is not: a way to find the other process ([`crate::Port`]) or to learn that it has
//! died (its socket tells).
//!
//! Prefetching the lines that are written next (`prefetchw`) was tried, and made calls slower by a
//! fifth, in a window and one at a time.

mod control;
mod end;
mod error;
mod memory;
pub(crate) mod pass;

/// The atomics of the protocol; the model test puts loom's in their place.
mod sync {
    pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

pub use control::PositionError;
pub use end::{RingEnd, RingReceiver, RingSender, Wake};
pub use error::{LayoutError, RingError};
pub(crate) use memory::owned;
pub use memory::{LEAST_BYTES, MOST_BYTES};

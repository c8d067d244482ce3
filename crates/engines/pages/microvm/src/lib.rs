//! A pager for microVMs: the memory of many clones of one snapshot, faulted in page by page from
//! one compressed store.
//!
//! What it is: [`Snapshot`], a memory file packed once, equal pages once and zeros for nothing;
//! [`Pager`], which listens at a Unix socket for VMMs that speak Firecracker's handshake (a layout
//! of guest memory, and the userfaultfd by which its faults are served), and puts pages in place
//! when they are touched; [`WorkingSet`], the order of first touches, recorded once and brought
//! ahead at every later restore.
//!
//! **Death of the pager.** A VMM sends its descriptor once, and can only wait when the process that
//! has it dies. So a holder (`dyno-pages-hold`) has it too, with the layout and the marks of pages
//! that no longer come from the snapshot. The next pager takes all machines over and wakes the
//! threads that wait; they fault again. **Death of a VMM** shows as the end of its connection, or,
//! for a machine that was taken over, as ESRCH from an order about its memory, and frees what was
//! kept of it.
//!
//! What it is not: a place that pages go back to. What a machine writes is in its own memory, and a
//! new snapshot is the VMM's to make. Huge pages are refused by name, as are children of a VMM that
//! forks. A damaged page raises SIGBUS where it is touched (Linux 6.6), and is never served.
//!
//! [`stand_in`] is a VMM's side of all this, for tests and measurements.

mod error;
mod figures;
mod greeting;
mod layout;
mod machine;
mod machines;
mod pager;
mod plan;
mod prefetch;
mod snapshot;
mod spent;
pub mod stand_in;
mod working_set;

pub use error::PagerError;
pub use figures::Figures;
pub use layout::{Layout, MOST_MESSAGE_BYTES, MOST_REGIONS, Region};
pub use machines::{MOST_MACHINES, MachineReport};
pub use pager::{Options, Pager, held_machines, held_snapshot};
pub use snapshot::{Identity, Snapshot};
pub use working_set::WorkingSet;

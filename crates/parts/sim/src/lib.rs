//! A disk with faults and crashes, for tests. The same seed and the same calls give the same disk.
//!
//! [`Disk`] stands for the file system below `dyno-io`'s sinks: it is a [`dyno_io::FileSystem`], its
//! files are [`dyno_io::Device`]s, and [`SimQueue`] stands for io_uring. Every call that can fail
//! is a step with a number, so that a test can put a fault or a crash at each in turn.
//!
//! # The crash model
//!
//! A crash loses what was not synced, but not in order and not whole:
//!
//! - Of the writes since a file's last sync each, on its own, survives, is lost, or is torn: then
//!   each of its sectors of 512 bytes survives or not. The write that was going on counts among them.
//! - A change of length since then survives or not, on its own. A lost sector within the surviving
//!   length reads as zeros, or as stale bytes that nobody wrote.
//! - New, changed and removed names since their directory's last sync survive or not, each on its
//!   own. A rename is one step: there is no moment without a file under the name it replaces.
//!   Syncing a file does not sync its name.
//! - A failed sync leaves each unsynced change as a crash would, and what it lost is lost for good: a
//!   later sync that succeeds does not bring it back (as on Linux, where a page that could not be
//!   written back is marked clean).
//!
//! That is weaker than what ext4 and XFS promise (they keep the order of names, for example), so what
//! holds here needs no promise of theirs. Not modelled: stable data that rots, a disk that confirms a
//! sync it did not do, two processes.

mod crash;
mod disk;
mod file;
mod queue;
mod random;

pub use disk::{Disk, Failure, Faults};
pub use file::SimFile;
pub use queue::SimQueue;
pub use random::Random;

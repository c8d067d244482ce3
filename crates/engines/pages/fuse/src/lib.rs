//! Compressed pages as a block device where ublk is missing: one file in a file system of our own
//! (FUSE), and a loop device on it.
//!
//! What it is: [`mount`], which makes a directory a file system of one file, [`DEVICE`], and
//! returns the descriptor that requests are read from; [`Serving`], threads that answer them from a
//! disk; [`LoopDevice`], the block device. All three steps need root (CAP_SYS_ADMIN).
//!
//! **A daemon that dies.** When the last process that has that descriptor open is gone, the system
//! ends the file system, and the device's users get errors. If a holder keeps the descriptor and
//! the store's memory, they wait instead: the next daemon takes both and serves with
//! [`Start::Resumed`], and the system repeats what was under way (Linux 6.9 and later).
//!
//! What it is not: fast (each request passes through two kernel layers and this process), durable,
//! or fit for swap: to serve a request the loop device needs memory, of which a system that swaps
//! has none. [`refuse_swap`] says so.

mod error;
mod flusher;
mod loop_device;
mod mounting;
mod reply;
mod request;
mod serving;

pub use error::FuseError;
pub use flusher::prepare_to_serve;
pub use loop_device::{LoopDevice, LoopOptions};
pub use mounting::{Connection, mount, unmount};
pub use serving::{Figures, Serving, Start};

/// The name of the one file in the file system.
pub const DEVICE: &str = "device";

/// Refuses swap on this front, always.
///
/// # Errors
/// [`FuseError::Swap`], with the reason.
pub fn refuse_swap() -> Result<(), FuseError> {
    Err(FuseError::Swap)
}

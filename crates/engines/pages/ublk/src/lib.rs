//! Compressed pages as a block device by ublk (Linux 6.0 or later with the module `ublk_drv`,
//! root).
//!
//! What it is: [`Device`], a block device `/dev/ublkbN` that is served from a disk by a thread for
//! each queue, over io_uring. A daemon that dies leaves the device: its users wait, and the next
//! daemon takes it over by [`Device::recover`], with the store's memory from a holder; what was
//! under way is done again. [`delete`] ends it. [`prepare_for_swap`] makes the process fit to serve
//! swap, and [`hold_for_swap`] keeps the memory in place between two daemons.
//!
//! What it is not: durable. A flush promises that the bytes are in the store's memory, where every
//! write that was answered already is.
//!
//! The protocol is that of `linux/ublk_cmd.h` and Documentation/block/ublk.rst.

mod control;
mod device;
mod error;
mod layout;
mod mapping;
mod missing;
mod queue;
mod swap;

pub use control::supported;
pub use device::{Device, Settings, delete};
pub use error::UblkError;
pub use swap::{hold_for_swap, prepare_for_swap};

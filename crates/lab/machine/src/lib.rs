//! What this machine is ([`machine()`], [`doctor()`]), what it can do ([`limits()`], [`link()`]),
//! what a run used ([`run_child`]).
//!
//! Facts are read from a [`Root`], so tests read a made-up machine. What cannot be read is said to
//! be not available, with the reason, and never reported as zero.

mod doctor;
mod error;
mod facts;
mod limits;
mod link;
mod load;
mod root;
mod sensors;
mod usage;

pub use doctor::doctor;
pub use error::MachineError;
pub use facts::{available_memory_bytes, free_disk_bytes, machine};
pub use limits::{Inflate, LimitOptions, LimitProgress, Limits, limits, own_inflaters};
pub use link::{LinkOptions, LinkServer, LinkServerOptions, link};
pub use load::{BuiltInLoad, end_with_parent};
pub use root::Root;
pub use sensors::{Readings, Sensors};
pub use usage::{
    Captured, ChildLimits, ChildRun, CpuTicks, Exit, Listener, load_average, run_child,
};

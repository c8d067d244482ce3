//! What this machine is, what it can do, what a run used.
mod error;
mod usage;

pub use error::MachineError;
pub use usage::{Captured, ChildLimits, ChildRun, CpuTicks, Exit, load_average, run_child};

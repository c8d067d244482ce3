//! The faults that are injected into a system while it works. They are drawn from a seed, so that a
//! run can be repeated.

mod ballast;
mod plan;
mod signal;

pub use ballast::{Ballast, BallastError, Tmpfs};
pub use plan::{Fault, Plan, Step};
pub use signal::{resume, stop_process, terminate};

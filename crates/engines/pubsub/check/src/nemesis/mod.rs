//! What is done to the system while it works: drawn from a seed, so that a run can be repeated.

mod ballast;
mod plan;
mod signal;

pub use ballast::{Ballast, BallastError, Tmpfs};
pub use plan::{Blow, Plan, Step};
pub use signal::{resume, stop_process, terminate};

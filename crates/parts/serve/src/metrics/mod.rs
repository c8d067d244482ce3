//! Metrics of a program: registered once by name and labels, updated from any thread by one atomic
//! addition, and written out on request.

mod cells;
mod names;
mod registry;
mod text;

pub use cells::{Counter, Gauge, Histogram, Scale};
pub use registry::Registry;

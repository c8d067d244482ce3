//! Numbers that a program keeps of itself: registered once by name and labels, updated from any
//! thread by one atomic addition, written out when they are requested.

mod cells;
mod names;
mod registry;
mod text;

pub use cells::{Counter, Gauge, Histogram, Scale};
pub use registry::Registry;

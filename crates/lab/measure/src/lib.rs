//! Puts load on something and records how long each operation took.
//!
//! What it is: a [`Clock`] handed in, a [`Schedule`] of intended starts, [`drive`], which runs an
//! operation under a schedule on some threads, and a [`Recorder`] of latencies counted from the
//! intended start (and, beside it, from the actual one).
//! What it is not: a client of anything; the operation is a closure.
//!
//! Latency counted from the actual start forgets the operations that a stall kept from starting
//! (coordinated omission, named by Gil Tene). Both are kept, so that the difference can be shown.

mod capacity;
mod clock;
mod drive;
mod error;
mod interval_log;
mod outcome;
mod recorder;
mod schedule;

pub use capacity::{CapacityOptions, CapacitySearch};
pub use clock::{Clock, ManualClock, SystemClock};
pub use drive::{Call, DriveOptions, Until, drive};
pub use error::MeasureError;
pub use interval_log::{CORRECTED_TAG, RAW_TAG, read_interval_log, write_interval_log};
pub use outcome::{GeneratorVerdict, LoadOutcome};
pub use recorder::{Interval, Latencies, Operation, Recorder};
pub use schedule::{Arrivals, Schedule};

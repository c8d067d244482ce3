//! The time of a run. It is handed in, so that a test can run a suite of hours at once.

use std::time::Instant;

use jiff::Timestamp;

/// Where the runner gets its time from.
pub trait Clock {
    /// Seconds since the run began.
    fn elapsed_s(&self) -> f64;
    /// Now as UTC, RFC 3339 with seconds.
    fn utc(&self) -> String;
}

/// The machine's clocks: the monotonic one for distances, the one of the calendar for records.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn elapsed_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn utc(&self) -> String {
        format!("{:.0}", Timestamp::now())
    }
}

//! The clock of a process.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time, and the time of day derived from it: the system clock is read once, at the
/// start, so that its later steps cannot make timestamps go backwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    start: Instant,
    start_wall_ns: u64,
}

impl Time {
    pub fn start() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let start_wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX / 2);
        Self {
            start: Instant::now(),
            start_wall_ns,
        }
    }

    /// Nanoseconds since the start, from 1: 0 is free to mean "never".
    pub fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64 + 1
    }

    /// The time of day, in nanoseconds since 1970, that corresponds to a value of [`Time::now`].
    pub fn wall(&self, now: u64) -> u64 {
        self.start_wall_ns.saturating_add(now)
    }
}

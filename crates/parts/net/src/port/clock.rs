//! A clock for deadlines: a few milliseconds coarse, and cheap enough to be read in every pass. Has
//! `unsafe`: one system call.

use std::time::Duration;

/// A moment, in nanoseconds of the system's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CoarseInstant(u64);

impl CoarseInstant {
    /// The time from `earlier` to this moment; zero if that is not earlier.
    pub fn since(self, earlier: CoarseInstant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment that is `wait` later, or the end of time.
    pub fn after(self, wait: Duration) -> CoarseInstant {
        let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        CoarseInstant(self.0.saturating_add(wait))
    }
}

/// The moment now, as of the last tick of the system (1 to 10 ms ago).
pub fn coarse_now() -> CoarseInstant {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure outlives the call. The clock is there on every Linux; if it were not,
    // the time would stand still, and deadlines would not pass.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    CoarseInstant(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

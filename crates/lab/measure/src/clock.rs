//! The clock that a load is run by. It is handed in, so that a test of a long load takes no time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock that never goes back. Zero is when it was made.
pub trait Clock: Sync {
    /// Nanoseconds since the clock was made; never less than an earlier answer.
    fn now_ns(&self) -> u64;

    /// Returns at `at_ns` or later, never before; at once when that has passed.
    fn wait_until(&self, at_ns: u64);
}

/// The system's monotonic clock. Waiting sleeps until shortly before the time and then spins, since
/// a sleep alone wakes 50 us late and more.
#[derive(Debug, Clone)]
pub struct SystemClock {
    zero: Instant,
}

/// The part of a wait that is spun.
const SPIN_NS: u64 = 80_000;

impl SystemClock {
    /// Starts a clock whose zero is the moment of the call.
    pub fn start() -> Self {
        Self {
            zero: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        // 2^64 ns are 584 years.
        self.zero.elapsed().as_nanos() as u64
    }

    fn wait_until(&self, at_ns: u64) {
        loop {
            let left_ns = at_ns.saturating_sub(self.now_ns());
            match left_ns {
                0 => return,
                ns if ns > SPIN_NS => std::thread::sleep(Duration::from_nanos(ns - SPIN_NS)),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

/// A clock that moves only when told, or when someone waits.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    /// Moves the clock forward by `ns`; threads that wait for an earlier time go on.
    pub fn advance(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }

    fn wait_until(&self, at_ns: u64) {
        self.now_ns.fetch_max(at_ns, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_never_ends_early() {
        let clock = SystemClock::start();
        for wait_ns in [0, 1_000, 200_000] {
            let at_ns = clock.now_ns() + wait_ns;
            clock.wait_until(at_ns);
            assert!(clock.now_ns() >= at_ns);
        }
        let manual = ManualClock::default();
        manual.wait_until(50);
        manual.wait_until(20);
        assert_eq!(manual.now_ns(), 50);
    }
}

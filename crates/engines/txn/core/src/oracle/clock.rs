//! The oracle within a process: one number that all threads share.

use std::sync::atomic::{AtomicU64, Ordering};

use dyno_txn_api::Timestamp;

/// Issues timestamps up to a bound that was logged, so that a restart begins above all of them.
#[derive(Debug)]
pub struct Clock {
    last: AtomicU64,
    bound: AtomicU64,
}

impl Clock {
    /// A clock that issues timestamps above `last` and up to `bound`, which must be durable.
    pub fn new(last: Timestamp, bound: Timestamp) -> Self {
        Self {
            last: AtomicU64::new(last),
            bound: AtomicU64::new(bound),
        }
    }

    /// Issues a timestamp: the time of day, or one more than the last timestamp if that is larger.
    /// None once the bound is reached, until [`Clock::extend`]. `now_ns` may step back.
    pub fn issue(&self, now_ns: u64) -> Option<Timestamp> {
        let bound = self.bound.load(Ordering::Acquire);
        let next = |last: u64| Some(now_ns.max(last + 1)).filter(|&timestamp| timestamp <= bound);
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let last = self.last.fetch_update(order.0, order.1, next).ok()?;
        Some(now_ns.max(last + 1))
    }

    /// Raises the bound, which must be durable.
    pub fn extend(&self, bound: Timestamp) {
        self.bound.fetch_max(bound, Ordering::AcqRel);
    }

    /// The last timestamp that was issued. None above it was.
    pub fn last(&self) -> Timestamp {
        self.last.load(Ordering::Acquire)
    }

    /// The largest timestamp that may be issued at present.
    pub fn bound(&self) -> Timestamp {
        self.bound.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_while_the_clock_stands_or_steps_back_and_stops_at_the_bound() {
        let clock = Clock::new(10, 100);
        let given: Vec<_> = [50, 50, 20, 99, 99, 99].map(|now| clock.issue(now)).into();
        assert_eq!(
            given,
            [Some(50), Some(51), Some(52), Some(99), Some(100), None]
        );
        clock.extend(200);
        assert_eq!(clock.issue(0), Some(101));
        assert_eq!(clock.last(), 101);
    }

    #[test]
    fn threads_never_get_the_same() {
        let clock = Clock::new(0, u64::MAX);
        let take = || (0..10_000).map(|_| clock.issue(0)).collect::<Vec<_>>();
        let mut all = std::thread::scope(|scope| {
            let threads = [scope.spawn(take), scope.spawn(take)];
            threads
                .map(|thread| thread.join().expect("no panic"))
                .concat()
        });
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 20_000);
    }
}

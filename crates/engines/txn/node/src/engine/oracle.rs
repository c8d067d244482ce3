//! Time and stamps of one engine. All its threads share one clock, which gives no stamp above a bound that
//! partition 0 has made durable; so a restart begins above every stamp that was given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_txn_api::Stamp;
use dyno_txn_core::Stamps;
use dyno_txn_core::oracle::Clock;

/// How far a bound goes beyond the time: the stamps of a restart begin so much ahead at most.
const WINDOW_NS: u64 = 2_000_000_000;
/// With less than this left nobody is given a stamp before the bound is further: nearly nothing, since it
/// is asked for long before.
const MARGIN_NS: u64 = 20_000_000;
/// After how long a bound is asked for again.
const ASK_AGAIN_NS: u64 = 100_000_000;

/// The oracle of a process.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub clock: Clock,
    asked_at: AtomicU64,
}

impl Oracle {
    /// One that gives nothing before [`Oracle::begin_above`].
    pub fn new() -> Self {
        Self {
            clock: Clock::new(0, 0),
            asked_at: AtomicU64::new(0),
        }
    }

    /// Everything it will give is above `floor`.
    pub fn begin_above(&self, floor: Stamp) {
        self.clock.extend(floor);
        self.clock.take(floor);
    }

    /// Whether stamps can be given for a while.
    pub fn is_ready(&self, wall_ns: u64) -> bool {
        self.clock.bound() >= wall_ns.max(self.clock.last()).saturating_add(MARGIN_NS)
    }

    /// The bound that partition 0 should keep next, if it is time to ask.
    pub fn wants(&self, now: u64, wall_ns: u64) -> Option<Stamp> {
        let base = wall_ns.max(self.clock.last());
        if self.clock.bound() >= base.saturating_add(WINDOW_NS / 2) {
            return None;
        }
        let due = |asked: u64| (asked == 0 || now >= asked + ASK_AGAIN_NS).then_some(now);
        let order = (Ordering::AcqRel, Ordering::Acquire);
        self.asked_at.fetch_update(order.0, order.1, due).ok()?;
        Some(base.saturating_add(WINDOW_NS))
    }

    /// The bound is durable.
    pub fn kept(&self, bound: Stamp) {
        self.clock.extend(bound);
        self.asked_at.store(0, Ordering::Release);
    }
}

/// What partitions of one thread take stamps from; the thread keeps `wall_ns` up to date.
#[derive(Debug, Clone)]
pub(crate) struct Taker {
    pub oracle: Arc<Oracle>,
    pub wall_ns: Arc<AtomicU64>,
}

impl Stamps for Taker {
    fn take(&mut self) -> Option<Stamp> {
        self.oracle.clock.take(self.wall_ns.load(Ordering::Relaxed))
    }

    fn plausible(&mut self, stamp: Stamp) -> bool {
        stamp <= self.oracle.clock.last()
    }
}

/// Where stamps come from other processes, a partition takes none itself.
#[derive(Debug, Clone)]
pub(crate) struct FromElsewhere {
    pub wall_ns: Arc<AtomicU64>,
}

/// How far beyond this process' time a client's stamp may lie: clocks differ, and an oracle that takes over begins
/// ahead of the time.
const AHEAD_NS: u64 = 60_000_000_000;

impl Stamps for FromElsewhere {
    fn take(&mut self) -> Option<Stamp> {
        None
    }

    fn plausible(&mut self, stamp: Stamp) -> bool {
        let wall = self.wall_ns.load(Ordering::Relaxed);
        stamp <= wall.saturating_add(AHEAD_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_asked_for_once_and_again_when_no_answer_comes() {
        let oracle = Oracle::new();
        oracle.begin_above(500);
        assert!(!oracle.is_ready(600));
        assert_eq!(oracle.clock.take(600), None);
        let bound = oracle.wants(1, 600).expect("nothing is left");
        assert_eq!(bound, 600 + WINDOW_NS);
        assert_eq!(oracle.wants(2, 600), None);
        assert!(oracle.wants(1 + ASK_AGAIN_NS, 600).is_some());
        oracle.kept(bound);
        assert!(oracle.is_ready(600));
        assert_eq!(oracle.wants(3, 600), None);
        assert_eq!(oracle.clock.take(400), Some(501));
    }
}

//! The timestamps of one engine. All its threads share one clock, which issues no timestamp above a
//! bound that partition 0 has made durable. So a restart, which begins above that bound, begins
//! above every timestamp that was ever issued.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_txn_api::Timestamp;
use dyno_txn_core::Timestamps;
use dyno_txn_core::oracle::Clock;

/// How far a bound lies ahead of the time. A restart issues timestamps that are ahead by this much
/// at most.
const WINDOW_NS: u64 = 2_000_000_000;
/// With less than this left, requests wait until the bound is extended. It is small, because the
/// extension is requested long before.
const MARGIN_NS: u64 = 20_000_000;
/// After how long a bound is requested again.
const REQUEST_AGAIN_NS: u64 = 100_000_000;

/// The oracle of a database in one process.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub clock: Clock,
    /// When a bound was requested that is not durable yet; 0: none was.
    requested_at: AtomicU64,
}

impl Oracle {
    /// Issues nothing before [`Oracle::start_above`].
    pub fn new() -> Self {
        Self {
            clock: Clock::new(0, 0),
            requested_at: AtomicU64::new(0),
        }
    }

    /// From now on, everything that it issues is above `floor`.
    pub fn start_above(&self, floor: Timestamp) {
        self.clock.extend(floor);
        self.clock.issue(floor);
    }

    /// Whether timestamps can be issued, with a margin that lasts for the rest of a pass.
    pub fn is_ready(&self, wall_ns: u64) -> bool {
        self.clock.bound() >= wall_ns.max(self.clock.last()).saturating_add(MARGIN_NS)
    }

    /// The bound that partition 0 should make durable next, if it is time to request one. All
    /// threads ask; the exchange lets one of them through, and another one if no confirmation comes
    /// in time.
    pub fn bound_to_request(&self, now: u64, wall_ns: u64) -> Option<Timestamp> {
        let base = wall_ns.max(self.clock.last());
        if self.clock.bound() >= base.saturating_add(WINDOW_NS / 2) {
            return None;
        }
        let due = |at: u64| (at == 0 || now >= at + REQUEST_AGAIN_NS).then_some(now);
        let order = (Ordering::AcqRel, Ordering::Acquire);
        self.requested_at.fetch_update(order.0, order.1, due).ok()?;
        Some(base.saturating_add(WINDOW_NS))
    }

    /// Partition 0 has made a bound durable.
    pub fn bound_kept(&self, bound: Timestamp) {
        self.clock.extend(bound);
        self.requested_at.store(0, Ordering::Release);
    }
}

/// Where the partitions of one thread take timestamps from. The thread keeps `wall_ns` up to date.
#[derive(Debug, Clone)]
pub(crate) struct LocalTimestamps {
    pub oracle: Arc<Oracle>,
    pub wall_ns: Arc<AtomicU64>,
}

impl Timestamps for LocalTimestamps {
    fn next(&mut self) -> Option<Timestamp> {
        self.oracle
            .clock
            .issue(self.wall_ns.load(Ordering::Relaxed))
    }

    fn plausible(&mut self, timestamp: Timestamp) -> bool {
        timestamp <= self.oracle.clock.last()
    }
}

/// Timestamps that oracles in other processes issue: clients bring them, and a partition takes none
/// itself.
#[derive(Debug, Clone)]
pub(crate) struct RemoteTimestamps {
    pub wall_ns: Arc<AtomicU64>,
}

/// How far a client's timestamp may lie ahead of this process's time: clocks differ, and an oracle
/// that takes over begins ahead of the time.
const AHEAD_NS: u64 = 60_000_000_000;

impl Timestamps for RemoteTimestamps {
    fn next(&mut self) -> Option<Timestamp> {
        None
    }

    fn plausible(&mut self, timestamp: Timestamp) -> bool {
        let wall = self.wall_ns.load(Ordering::Relaxed);
        timestamp <= wall.saturating_add(AHEAD_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_requested_once_and_again_when_no_answer_comes() {
        let oracle = Oracle::new();
        oracle.start_above(500);
        assert!(!oracle.is_ready(600));
        assert_eq!(oracle.clock.issue(600), None);
        let bound = oracle.bound_to_request(1, 600).expect("nothing is left");
        assert_eq!(bound, 600 + WINDOW_NS);
        assert_eq!(oracle.bound_to_request(2, 600), None);
        assert!(oracle.bound_to_request(1 + REQUEST_AGAIN_NS, 600).is_some());
        oracle.bound_kept(bound);
        assert!(oracle.is_ready(600));
        assert_eq!(oracle.bound_to_request(3, 600), None);
        assert_eq!(oracle.clock.issue(400), Some(501));
    }
}

//! How far readers are behind writers, over time.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dyno_measure::Clock;

use super::flow::Shared;

/// Messages written that the slowest group has not read yet, at even times.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Time and messages.
    seen: Vec<(u64, u64)>,
}

const EVERY: Duration = Duration::from_millis(50);
/// A backlog counts as growing when its last quarter is above its second by this many seconds of the rate.
const GROWTH_S: f64 = 0.25;
/// Runs of less than two seconds are too short to tell growth from a start.
const LOOKS_MIN: usize = 40;

impl Backlog {
    /// Looks until the flow is stopped.
    pub fn watch(shared: &Shared) -> Backlog {
        let mut backlog = Backlog::default();
        while !shared.stop.load(Ordering::Relaxed) {
            thread::sleep(EVERY);
            let read = shared.read.iter().map(|n| n.load(Ordering::SeqCst)).min();
            let written = shared.written.load(Ordering::SeqCst);
            let behind = written.saturating_sub(read.unwrap_or(written));
            backlog.seen.push((shared.clock.now_ns(), behind));
        }
        backlog
    }

    /// What was seen while writers wrote.
    pub fn until(mut self, at_ns: u64) -> Backlog {
        self.seen.retain(|(seen_ns, _)| *seen_ns <= at_ns);
        self
    }

    /// A hundred looks, for tests.
    #[cfg(test)]
    pub fn seen(messages: impl Fn(u64) -> u64) -> Backlog {
        Backlog {
            seen: (0..100).map(|look| (look, messages(look))).collect(),
        }
    }

    /// The highest, in messages.
    pub fn max(&self) -> u64 {
        self.seen.iter().map(|(_, n)| *n).max().unwrap_or(0)
    }

    /// Says so when it grew, under `rate` messages a second.
    pub fn grew(&self, rate: f64) -> Option<String> {
        if self.seen.len() < LOOKS_MIN {
            return None;
        }
        let quarter = self.seen.len() / 4;
        let mean = |from: usize| {
            let part = &self.seen[from..from + quarter];
            part.iter().map(|(_, n)| *n as f64).sum::<f64>() / quarter as f64
        };
        let (early, late) = (mean(quarter), mean(self.seen.len() - quarter));
        (late > early + GROWTH_S * rate).then(|| {
            format!(
                "readers fell behind: {late:.0} messages in the last quarter of the run, {early:.0} in its second"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_from_a_burst_at_the_start() {
        assert!(Backlog::seen(|i| i * 100).grew(1_000.0).is_some());
        assert_eq!(
            Backlog::seen(|i| if i < 20 { 9_000 } else { 50 }).grew(1_000.0),
            None
        );
        assert_eq!(Backlog::seen(|_| 0).grew(1_000.0), None);
        assert_eq!(Backlog::seen(|i| i * 100).until(50).max(), 5_000);
    }
}

//! Measures over time how far readers are behind the schedule, or behind the writers if there is no
//! rate.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dyno_measure::Clock;

use super::shared::{Flow, Shared};

/// How many messages the slowest group had not read yet, sampled at even intervals. With a rate,
/// messages count from when they were due, so a writer that falls behind its schedule also makes a
/// backlog; without one, from when they were sent.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Pairs of time in nanoseconds and messages behind.
    seen: Vec<(u64, u64)>,
}

const EVERY: Duration = Duration::from_millis(50);
/// A backlog counts as growing when its last quarter is above its second by this many seconds of
/// the rate.
const GROWTH_S: f64 = 0.25;
/// Runs of less than two seconds are too short to tell growth from a start.
const LOOKS_MIN: usize = 40;

impl Backlog {
    /// Samples until the flow is stopped.
    pub fn watch(shared: &Shared, flow: &Flow) -> Backlog {
        let mut backlog = Backlog::default();
        while !shared.stop.load(Ordering::Relaxed) {
            thread::sleep(EVERY);
            // The slowest group decides: a message has arrived when every group has it.
            let read = shared.read.iter().map(|n| n.load(Ordering::SeqCst)).min();
            let now_ns = shared.clock.now_ns();
            let sent = match (flow.rate, shared.writing_since_ns.get()) {
                (Some(rate), Some(since_ns)) => {
                    let due = now_ns.saturating_sub(*since_ns) as f64 / 1e9 * rate;
                    flow.messages.min(due as u64)
                }
                _ => shared.written.load(Ordering::SeqCst),
            };
            let behind = sent.saturating_sub(read.unwrap_or(sent));
            backlog.seen.push((now_ns, behind));
        }
        backlog
    }

    /// Keeps only the samples up to `at_ns`, when messages were still to be sent.
    pub fn until(mut self, at_ns: u64) -> Backlog {
        self.seen.retain(|(seen_ns, _)| *seen_ns <= at_ns);
        self
    }

    /// A hundred samples, for tests.
    #[cfg(test)]
    pub fn seen(messages: impl Fn(u64) -> u64) -> Backlog {
        Backlog {
            seen: (0..100).map(|look| (look, messages(look))).collect(),
        }
    }

    /// The largest sample, in messages.
    pub fn max(&self) -> u64 {
        self.seen.iter().map(|(_, n)| *n).max().unwrap_or(0)
    }

    /// Describes the growth if the backlog grew at `rate` messages a second.
    pub fn grew(&self, rate: f64) -> Option<String> {
        if self.seen.len() < LOOKS_MIN {
            return None;
        }
        // The second quarter is the base and not the first, which holds the start, when connections
        // warm up and a backlog is normal.
        let quarter = self.seen.len() / 4;
        let mean = |from: usize| {
            let part = &self.seen[from..from + quarter];
            part.iter().map(|(_, n)| *n as f64).sum::<f64>() / quarter as f64
        };
        let (early, late) = (mean(quarter), mean(self.seen.len() - quarter));
        (late > early + GROWTH_S * rate).then(|| {
            format!(
                "it fell behind: by {late:.0} messages in the last quarter of the run, by {early:.0} in its second"
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

//! Counts operations in equal windows of the measured time, so that the lab can tell a steady rate
//! from one that falls.

use std::time::Duration;

use dyno_measure::LoadOutcome;
use dyno_suite::protocol::Reply;

/// Windows of a run whose length is known: twice as many as the lab needs, so that it can tell
/// noise from a trend.
pub(crate) const WINDOWS: u32 = 40;

/// Operations by windows from the start of what is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Windows {
    length_ns: u64,
    counts: Vec<u64>,
}

impl Windows {
    /// Equal windows over `measured`, all empty.
    pub fn over(measured: Duration) -> Windows {
        let length_ns = (measured.as_nanos() as u64 / u64::from(WINDOWS)).max(1);
        Windows {
            length_ns,
            counts: vec![0; WINDOWS as usize],
        }
    }

    /// Operations of a load by its snapshots. Those that ended after `measured`, and the last
    /// stretch when it was cut short, belong to no window: clients that are done wait there for the
    /// others, and the rate is not that of the service.
    pub fn from_load(load: &LoadOutcome, measured: Option<Duration>) -> Windows {
        let whole_ns = load.ended_ns.saturating_sub(load.started_ns);
        let until_ns = measured.map_or(whole_ns, |it| whole_ns.min(it.as_nanos() as u64));
        let intervals = load.recorder.intervals();
        let Some(first) = intervals.first() else {
            return Windows::default();
        };
        let length_ns = first.length_ns;
        let counts = intervals.iter().map(|interval| interval.corrected.count());
        let mut counts: Vec<u64> = counts.collect();
        // A window in which nothing ended counts too, with zero operations.
        counts.resize((until_ns / length_ns) as usize, 0);
        Windows { length_ns, counts }
    }

    /// Counts operations that ended `at_ns` after the start. Those after the last window are not
    /// counted.
    pub fn count(&mut self, at_ns: u64, operations: u64) {
        let place = at_ns / self.length_ns.max(1);
        if let Some(count) = self.counts.get_mut(place as usize) {
            *count += operations;
        }
    }

    /// Adds what another client counted over the same time.
    pub fn add(&mut self, other: &Windows) {
        debug_assert_eq!(self.length_ns, other.length_ns);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// The rate of each window in units of the figure, where an operation is `each` units.
    pub fn rates(&self, each: f64) -> Vec<f64> {
        let seconds = self.length_ns as f64 / 1e9;
        let counts = self.counts.iter();
        counts.map(|count| *count as f64 * each / seconds).collect()
    }

    /// Length of a window in seconds.
    pub fn length_s(&self) -> f64 {
        self.length_ns as f64 / 1e9
    }

    /// Adds the windows to a reply, where an operation is `each` units of the figure.
    pub(crate) fn tell(&self, reply: &mut Reply, each: f64) {
        if !self.counts.is_empty() {
            reply.windows = self.rates(each);
            reply.window_s = Some(self.length_s());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_measure::{Operation, Recorder, Schedule};

    #[test]
    fn operations_are_counted_where_they_end() {
        let mut windows = Windows::over(Duration::from_secs(20));
        for (at_s, operations) in [(0.1, 5), (0.49, 1), (19.9, 7), (20.1, 100)] {
            windows.count((at_s * 1e9) as u64, operations);
        }
        let rates = windows.rates(2.0);
        assert_eq!((rates.len(), windows.length_s()), (40, 0.5));
        assert_eq!((rates[0], rates[1], rates[39]), (24.0, 0.0, 28.0));
        let mut reply = Reply::default();
        windows.tell(&mut reply, 1.0);
        assert_eq!((reply.windows[0], reply.window_s), (12.0, Some(0.5)));
    }

    #[test]
    fn a_load_gives_whole_windows_of_the_time_that_was_asked_for() {
        let mut recorder = Recorder::new(1_000, 500_000_000).expect("a recorder");
        for at_ns in [100_000_000, 1_600_000_000, 2_100_000_000] {
            let ended_ns = 1_000 + at_ns;
            let one = Operation {
                intended_ns: ended_ns,
                started_ns: ended_ns,
                ended_ns,
                was_waiting: false,
            };
            recorder.record(one).expect("recorded");
        }
        let load = LoadOutcome {
            schedule: Schedule::ClosedLoop,
            recorder,
            started_ns: 1_000,
            ended_ns: 1_000 + 2_200_000_000,
            done: 3,
            failed: 0,
            first_error: None,
            skipped: 0,
            unsent: 0,
        };
        let asked = Windows::from_load(&load, Some(Duration::from_secs(2)));
        assert_eq!(asked.rates(1.0), [2.0, 0.0, 0.0, 2.0]);
        assert_eq!(Windows::from_load(&load, None).rates(1.0).len(), 4);
    }
}

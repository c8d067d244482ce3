//! Latencies as histograms, twice: from the intended start and from the actual one.

use hdrhistogram::Histogram;

use crate::error::MeasureError;

/// Values up to an hour are kept to three digits; what is longer counts as an hour and is counted.
const LONGEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// Intervals kept: when there are more, neighbours are joined and the interval doubles, so memory
/// stays bounded however long the run is.
const INTERVALS_MAX: usize = 256;

/// One operation, on one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// When the schedule meant it to start; equal to `started_ns` in a closed loop.
    pub intended_ns: u64,
    /// When the operation was really called, at its intended start or later.
    pub started_ns: u64,
    /// When the operation returned, with or without an error.
    pub ended_ns: u64,
    /// Whether its thread stood ready at the intended start. If so, a late start is the generator's
    /// own doing; if not, the thread was still busy with the operation before.
    pub was_waiting: bool,
}

/// A histogram of latencies in nanoseconds, to three significant digits.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
    clipped: u64,
}

impl Latencies {
    /// No latencies yet.
    ///
    /// # Errors
    /// Never with these bounds; the histogram's constructor says so by its type alone.
    pub fn new() -> Result<Self, MeasureError> {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000, DIGITS)
            .map_err(|reason| MeasureError::histogram("make", reason))?;
        histogram.auto(true);
        Ok(Self {
            histogram,
            clipped: 0,
        })
    }

    pub(crate) fn from_histogram(histogram: Histogram<u64>) -> Self {
        Self {
            histogram,
            clipped: 0,
        }
    }

    /// Counts one latency.
    ///
    /// # Errors
    /// When the histogram cannot grow to hold it.
    pub fn record(&mut self, ns: u64) -> Result<(), MeasureError> {
        self.clipped += u64::from(ns > LONGEST_NS);
        self.histogram
            .record(ns.clamp(1, LONGEST_NS))
            .map_err(|reason| MeasureError::histogram("grow", reason))
    }

    /// Adds the latencies of another.
    ///
    /// # Errors
    /// When the histogram cannot grow.
    pub fn add(&mut self, other: &Self) -> Result<(), MeasureError> {
        self.clipped += other.clipped;
        self.histogram
            .add(&other.histogram)
            .map_err(|reason| MeasureError::histogram("add", reason))
    }

    /// How many latencies were recorded, the clipped ones included.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Latencies above an hour, counted as an hour.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// The latency that a share `p` (0 to 1) stays at or below, in nanoseconds; `None` when empty.
    pub fn quantile_ns(&self, p: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.value_at_quantile(p))
    }

    /// The longest, in nanoseconds, to three digits; `None` when empty.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.max())
    }

    /// The mean in nanoseconds; `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.mean())
    }

    /// The histogram itself, for logs and plots.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

/// What happened in one stretch of the run.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Start on the run's clock.
    pub start_ns: u64,
    /// Length of the stretch in nanoseconds; the last one may reach beyond the end of the run.
    pub length_ns: u64,
    /// Latencies from the intended start, of operations that ended in this stretch.
    pub corrected: Latencies,
}

/// Records operations of one thread, or of several after [`Recorder::add`].
#[derive(Debug, Clone)]
pub struct Recorder {
    /// From the intended start: what a user who came at that time waited.
    pub corrected: Latencies,
    /// From the actual start: what the operation itself took.
    pub raw: Latencies,
    /// How late operations started, whatever the reason.
    pub lag: Latencies,
    /// How late operations started whose thread stood ready: the generator's own error.
    pub wake_lag: Latencies,
    start_ns: u64,
    interval_ns: u64,
    intervals: Vec<Interval>,
}

impl Recorder {
    /// A recorder for a run that starts at `start_ns`, with a snapshot every `interval_ns`.
    ///
    /// # Errors
    /// As [`Latencies::new`].
    pub fn new(start_ns: u64, interval_ns: u64) -> Result<Self, MeasureError> {
        Ok(Self {
            corrected: Latencies::new()?,
            raw: Latencies::new()?,
            lag: Latencies::new()?,
            wake_lag: Latencies::new()?,
            start_ns,
            interval_ns: interval_ns.max(1),
            intervals: Vec::new(),
        })
    }

    /// Counts one operation.
    ///
    /// # Errors
    /// When a histogram cannot grow or a new interval cannot be made.
    pub fn record(&mut self, operation: Operation) -> Result<(), MeasureError> {
        let corrected_ns = operation.ended_ns.saturating_sub(operation.intended_ns);
        let lag_ns = operation.started_ns.saturating_sub(operation.intended_ns);
        self.corrected.record(corrected_ns)?;
        self.raw
            .record(operation.ended_ns.saturating_sub(operation.started_ns))?;
        self.lag.record(lag_ns)?;
        if operation.was_waiting {
            self.wake_lag.record(lag_ns)?;
        }
        self.interval_at(operation.ended_ns)?
            .corrected
            .record(corrected_ns)?;
        Ok(())
    }

    /// The snapshots, in order, empty ones included.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Adds what another thread of the same run recorded.
    ///
    /// # Errors
    /// When a histogram cannot grow.
    pub fn add(&mut self, mut other: Self) -> Result<(), MeasureError> {
        self.corrected.add(&other.corrected)?;
        self.raw.add(&other.raw)?;
        self.lag.add(&other.lag)?;
        self.wake_lag.add(&other.wake_lag)?;
        // Threads of one run double their intervals at different times, when each has too many. All
        // lengths are the first one times a power of two, so the shorter can always catch up.
        while self.interval_ns < other.interval_ns {
            self.join_neighbours()?;
        }
        while other.interval_ns < self.interval_ns {
            other.join_neighbours()?;
        }
        for interval in &other.intervals {
            self.interval_at(interval.start_ns)?
                .corrected
                .add(&interval.corrected)?;
        }
        Ok(())
    }

    fn interval_at(&mut self, at_ns: u64) -> Result<&mut Interval, MeasureError> {
        let since_ns = at_ns.saturating_sub(self.start_ns);
        // An operation that hung for hours must not make a vector of as many snapshots as would lie
        // in between.
        while since_ns / self.interval_ns >= INTERVALS_MAX as u64 {
            self.join_neighbours()?;
        }
        let index = (since_ns / self.interval_ns) as usize;
        while self.intervals.len() <= index {
            let start_ns = self.start_ns + self.intervals.len() as u64 * self.interval_ns;
            let length_ns = self.interval_ns;
            self.intervals.push(Interval {
                start_ns,
                length_ns,
                corrected: Latencies::new()?,
            });
        }
        Ok(&mut self.intervals[index])
    }

    fn join_neighbours(&mut self) -> Result<(), MeasureError> {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        let mut joined: Vec<Interval> = Vec::with_capacity(self.intervals.len().div_ceil(2));
        for (index, mut interval) in std::mem::take(&mut self.intervals).into_iter().enumerate() {
            interval.length_ns = self.interval_ns;
            match joined.last_mut().filter(|_| index % 2 == 1) {
                Some(before) => before.corrected.add(&interval.corrected)?,
                None => joined.push(interval),
            }
        }
        self.intervals = joined;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn operation(intended_ns: u64, started_ns: u64, ended_ns: u64) -> Operation {
        Operation {
            intended_ns,
            started_ns,
            ended_ns,
            was_waiting: false,
        }
    }

    #[test]
    fn both_latencies_are_kept() {
        let mut recorder = Recorder::new(0, 1_000_000).unwrap();
        recorder.record(operation(1_000, 51_000, 61_000)).unwrap();
        let p50 = |latencies: &Latencies| latencies.quantile_ns(0.5).unwrap() / 100;
        assert_eq!(
            (
                p50(&recorder.corrected),
                p50(&recorder.raw),
                p50(&recorder.lag)
            ),
            (600, 100, 500)
        );
        assert_eq!(recorder.wake_lag.quantile_ns(0.5), None);
    }

    #[test]
    fn a_long_run_keeps_a_bounded_number_of_intervals() {
        let mut recorder = Recorder::new(0, 1).unwrap();
        for i in 0..10_000u64 {
            recorder.record(operation(i, i, i + 1)).unwrap();
        }
        assert!(recorder.intervals().len() <= INTERVALS_MAX);
        let counted: u64 = recorder
            .intervals()
            .iter()
            .map(|i| i.corrected.count())
            .sum();
        assert_eq!(counted, 10_000);
        let lengths = recorder.intervals().iter().all(|i| i.length_ns == 64);
        assert!(lengths && recorder.intervals()[1].start_ns == 64);
    }

    #[test]
    fn hours_are_clipped_and_counted() {
        let mut latencies = Latencies::new().unwrap();
        latencies.record(LONGEST_NS * 2).unwrap();
        assert_eq!(latencies.clipped(), 1);
        assert!(latencies.max_ns().unwrap() >= LONGEST_NS);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn threads_together_equal_one(times in prop::collection::vec((0u64..1 << 34, 0u64..1 << 30), 1..60), cut in 0usize..60) {
            let mut whole = Recorder::new(0, 1 << 20).unwrap();
            let mut parts = [Recorder::new(0, 1 << 20).unwrap(), Recorder::new(0, 1 << 20).unwrap()];
            for (i, (start, length)) in times.iter().enumerate() {
                let one = operation(*start, start + length / 3, start + length);
                whole.record(one).unwrap();
                parts[usize::from(i >= cut)].record(one).unwrap();
            }
            let [mut first, second] = parts;
            first.add(second).unwrap();
            for p in [0.0, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(first.corrected.quantile_ns(p), whole.corrected.quantile_ns(p));
                prop_assert_eq!(first.raw.quantile_ns(p), whole.raw.quantile_ns(p));
            }
            let counts = |r: &Recorder| -> Vec<u64> { r.intervals().iter().map(|i| i.corrected.count()).collect() };
            prop_assert_eq!(counts(&first), counts(&whole));
        }
    }
}

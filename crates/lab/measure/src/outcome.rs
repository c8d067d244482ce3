//! What a load came to, and whether its generator kept up.

use crate::recorder::Recorder;
use crate::schedule::Schedule;

/// What came of a load, over all its threads.
#[derive(Debug, Clone)]
pub struct LoadOutcome {
    /// The schedule that the load followed, which decides whether it offered a rate.
    pub schedule: Schedule,
    /// Latencies and snapshots of all threads together.
    pub recorder: Recorder,
    /// When the first thread was let go, in nanoseconds of the clock that was handed in.
    pub started_ns: u64,
    /// End of the last operation, or of the time asked for when that came later.
    pub ended_ns: u64,
    /// Operations that ended without an error; only these are in the histograms.
    pub done: u64,
    /// Operations that ended with an error; their latencies are not in the histograms.
    pub failed: u64,
    /// The first error, in words.
    pub first_error: Option<String>,
    /// Arrivals left out because they were later than the limit.
    pub skipped: u64,
    /// Arrivals that were due before the end and never started.
    pub unsent: u64,
}

/// Whether the offered load was really offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GeneratorVerdict {
    /// A closed loop offers no rate.
    NoRate,
    /// The load was offered as planned.
    KeptUp,
    /// It was not, so latencies at that rate are not what was measured; the reasons say why.
    FellBehind(Vec<String>),
}

/// Share of the arrivals that may go missing.
const MISSING_MAX: f64 = 0.01;
/// How late a thread that stands ready may start, at the 99th percentile.
const WAKE_LAG_P99_MAX_NS: u64 = 1_000_000;

impl LoadOutcome {
    /// Operations that ended well, per second of the run.
    pub fn rate_per_s(&self) -> f64 {
        let seconds = (self.ended_ns - self.started_ns) as f64 / 1e9;
        if seconds > 0.0 {
            self.done as f64 / seconds
        } else {
            0.0
        }
    }

    /// Operations whose start was later than intended by more than `ns`.
    pub fn late(&self, ns: u64) -> u64 {
        let lag = self.recorder.lag.histogram();
        lag.len().saturating_sub(lag.count_between(0, ns.max(1)))
    }

    /// Whether the generator kept up. It did not when more than 1% of the arrivals were skipped or
    /// never sent, or when threads that stood ready started more than 1 ms late at the 99th
    /// percentile.
    pub fn generator(&self) -> GeneratorVerdict {
        let Some(rate_per_s) = self.schedule.rate_per_s() else {
            return GeneratorVerdict::NoRate;
        };
        let mut reasons = Vec::new();
        let missing = self.skipped + self.unsent;
        let due = self.done + self.failed + missing;
        if missing as f64 > MISSING_MAX * due as f64 {
            reasons.push(format!(
                "{missing} of {due} arrivals at {rate_per_s} per second were not sent \
                 ({} skipped as too late, {} still waiting at the end): every thread was busy",
                self.skipped, self.unsent
            ));
        }
        // Only threads that stood ready are looked at: how late the others started says how busy
        // the measured system kept them, which is what the latency is there to show.
        let wake_lag_ns = self.recorder.wake_lag.quantile_ns(0.99).unwrap_or(0);
        if wake_lag_ns > WAKE_LAG_P99_MAX_NS {
            reasons.push(format!(
                "threads that stood ready started {} us late at p99: the generator lacked processor time",
                wake_lag_ns / 1_000
            ));
        }
        if reasons.is_empty() {
            GeneratorVerdict::KeptUp
        } else {
            GeneratorVerdict::FellBehind(reasons)
        }
    }
}

//! Counts what clients did and turns it into metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_measure::Latencies;
use dyno_record::KEPT_SCHEDULE;

use super::K2Error;
use super::params::K2Params;
use crate::{Windows, quantiles};

/// Quantiles under their names in records.
/// Attempts of one transaction before it is given up.
pub(super) const TRIES_MAX: u32 = 1_000;
/// If more due transactions than this number and this share never started, the backlog counts as
/// growing. Fewer are what a moment's stall at the end leaves.
const UNSENT_MAX: (u64, f64) = (64, 0.01);
/// Clients that had room and started later than this at the 99th percentile did not offer the rate.
const LAG_MAX_NS: u64 = 1_000_000;

/// The sums over all clients.
pub(super) struct Counts {
    pub committed: u64,
    /// Attempts that ended in a conflict and were repeated.
    pub again: u64,
    /// Transactions that failed otherwise, and the first reason.
    pub failed: u64,
    pub first_error: Option<String>,
    /// Seconds from the first intended start to the last answer.
    pub seconds: f64,
    /// From the intended start to the answer, retries included.
    pub latencies: Latencies,
    /// Under a rate: how late transactions started although the client had room.
    pub lag: Latencies,
    /// Under a rate: transactions that were due before the end and never started.
    pub unsent: u64,
    /// Committed transactions by the time of their answers.
    pub windows: Windows,
}

impl Counts {
    /// Empty counts for a load of length `measured`.
    pub fn new(measured: Duration) -> Result<Counts, K2Error> {
        Ok(Counts {
            committed: 0,
            again: 0,
            failed: 0,
            first_error: None,
            seconds: 0.0,
            latencies: Latencies::new()?,
            lag: Latencies::new()?,
            unsent: 0,
            windows: Windows::over(measured),
        })
    }

    pub fn add(&mut self, other: &Counts) -> Result<(), K2Error> {
        self.committed += other.committed;
        self.again += other.again;
        self.failed += other.failed;
        self.first_error = self.first_error.take().or(other.first_error.clone());
        self.seconds = self.seconds.max(other.seconds);
        self.unsent += other.unsent;
        self.windows.add(&other.windows);
        self.lag.add(&other.lag)?;
        Ok(self.latencies.add(&other.latencies)?)
    }

    /// Counts a transaction that failed for good.
    pub fn fail(&mut self, text: String) {
        self.failed += 1;
        self.first_error.get_or_insert(text);
    }

    /// A run in which transactions failed is not a measurement.
    pub fn whole(self) -> Result<Counts, K2Error> {
        match (&self.first_error, self.failed) {
            (Some(first), failed) => {
                let text = format!("{failed} transactions failed, the first one because {first}");
                Err(K2Error::Wrong(text))
            }
            (None, _) => Ok(self),
        }
    }

    fn rate(&self) -> f64 {
        self.committed as f64 / self.seconds.max(1e-9)
    }

    /// Whether more transactions were due than the system began.
    pub fn fell_behind(&self) -> bool {
        let due = self.committed + self.failed + self.unsent;
        let share = self.unsent as f64 / due.max(1) as f64;
        self.unsent > UNSENT_MAX.0 && share > UNSENT_MAX.1
    }

    /// Describes whether the system kept up with the rate.
    pub fn rate_kept(&self, rate: f64) -> String {
        if self.fell_behind() {
            format!(
                "fell behind: {:.0} of {rate:.0} a second, {} never started",
                self.rate(),
                self.unsent
            )
        } else {
            "kept up".to_owned()
        }
    }

    /// Describes whether the clients offered the rate.
    pub fn generator_kept(&self) -> String {
        match self.lag.quantile_ns(0.99) {
            Some(late_ns) if late_ns > LAG_MAX_NS => format!(
                "starts were {:.1} ms late at the 99th percentile",
                late_ns as f64 / 1e6
            ),
            _ => KEPT_SCHEDULE.to_owned(),
        }
    }

    /// Rates are per second, latencies in seconds. With a growing backlog there are no latencies,
    /// because they would depend only on how long the run was.
    pub fn metrics(&self, params: &K2Params) -> BTreeMap<String, f64> {
        let tries = self.committed + self.again;
        let mut metrics = BTreeMap::from([
            ("throughput".to_owned(), self.rate()),
            (
                "aborted".to_owned(),
                self.again as f64 / tries.max(1) as f64,
            ),
            ("transactions".to_owned(), self.committed as f64),
        ]);
        let seconds = |ns: u64| ns as f64 / 1e9;
        if params.rate.is_none() || !self.fell_behind() {
            quantiles::insert(&mut metrics, "latency", &self.latencies, 1.0);
            if let Some(ns) = self.latencies.mean_ns() {
                metrics.insert("latency-mean".to_owned(), ns / 1e9);
            }
            metrics.insert("latency-count".to_owned(), self.latencies.count() as f64);
        }
        if let Some(ns) = self.lag.quantile_ns(0.99) {
            metrics.insert("generator-lag-p99".to_owned(), seconds(ns));
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::k2::params::tests::params;

    #[test]
    fn of_a_backlog_that_grows_no_latency_is_told() {
        let mut counts = Counts::new(Duration::from_secs(1)).expect("a histogram");
        counts.latencies.record(5_000).expect("a latency");
        (counts.committed, counts.seconds) = (900, 1.0);
        for (rate, unsent, keeps_up) in [
            (None, 0, true),
            (Some(900.0), 0, true),
            (Some(960.0), 60, true),
            (Some(1_000.0), 100, false),
        ] {
            let params = K2Params {
                rate,
                ..params("all", 0)
            };
            counts.unsent = unsent;
            let metrics = counts.metrics(&params);
            assert_eq!(metrics.contains_key("latency-p50"), keeps_up, "{rate:?}");
            assert_eq!(metrics["throughput"], 900.0);
            assert_eq!(counts.rate_kept(900.0) == "kept up", keeps_up);
        }
        counts.lag.record(5_000_000).expect("a lag");
        assert!(counts.generator_kept().contains("5.0 ms late"));
    }

    #[test]
    fn a_run_with_failures_is_no_measurement() {
        let mut counts = Counts::new(Duration::from_secs(1)).expect("a histogram");
        assert!(
            Counts::new(Duration::from_secs(1))
                .expect("a histogram")
                .whole()
                .is_ok()
        );
        counts.fail("it broke".to_owned());
        let error = counts.whole().err().expect("refused").to_string();
        assert!(error.contains("it broke"), "{error}");
    }
}

//! What clients counted.

use std::collections::BTreeMap;

use dyno_measure::{GeneratorVerdict, Latencies};

use super::K2Error;
use super::asked::Asked;

/// Quantiles by the names they have in records.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];
/// Conflicts of one transaction until it is given up.
pub(super) const TRIES_MAX: u32 = 1_000;
/// Of the offered transactions so many must be done for their latencies to be those of that rate.
const KEPT_MIN: f64 = 0.99;

/// All clients together.
pub(super) struct Seen {
    pub committed: u64,
    /// Tries that ended in a conflict and were repeated.
    pub again: u64,
    /// Transactions that failed otherwise, and the first reason.
    pub failed: u64,
    pub first_error: Option<String>,
    /// From the first intended start to the last answer.
    pub seconds: f64,
    /// From the intended start to the answer, conflicts included.
    pub latencies: Latencies,
    pub generator: GeneratorVerdict,
}

impl Seen {
    pub fn new() -> Result<Seen, K2Error> {
        Ok(Seen {
            committed: 0,
            again: 0,
            failed: 0,
            first_error: None,
            seconds: 0.0,
            latencies: Latencies::new()?,
            generator: GeneratorVerdict::NoRate,
        })
    }

    pub fn add(&mut self, other: &Seen) -> Result<(), K2Error> {
        self.committed += other.committed;
        self.again += other.again;
        self.failed += other.failed;
        self.first_error = self.first_error.take().or(other.first_error.clone());
        self.seconds = self.seconds.max(other.seconds);
        Ok(self.latencies.add(&other.latencies)?)
    }

    /// One that failed for good.
    pub fn fail(&mut self, text: String) {
        self.failed += 1;
        self.first_error.get_or_insert(text);
    }

    /// A run in which transactions failed is no measurement.
    pub fn whole(self) -> Result<Seen, K2Error> {
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

    /// In words, whether the offered rate was kept.
    pub fn rate_kept(&self, rate: f64) -> String {
        match (&self.generator, self.rate() >= rate * KEPT_MIN) {
            (GeneratorVerdict::FellBehind(reasons), _) => reasons.join("; "),
            (_, false) => format!("fell behind: {:.0} of {rate:.0} a second", self.rate()),
            (_, true) => "kept up".to_owned(),
        }
    }

    /// Rates a second, latencies in seconds. Of a rate that was not kept latencies say only how long the run was,
    /// so there are none.
    pub fn metrics(&self, asked: &Asked) -> BTreeMap<String, f64> {
        let tries = self.committed + self.again;
        let mut metrics = BTreeMap::from([
            ("throughput".to_owned(), self.rate()),
            (
                "aborted".to_owned(),
                self.again as f64 / tries.max(1) as f64,
            ),
            ("transactions".to_owned(), self.committed as f64),
        ]);
        let kept = asked
            .rate
            .is_none_or(|rate| self.rate_kept(rate) == "kept up");
        if kept {
            for (name, p) in QUANTILES {
                if let Some(ns) = self.latencies.quantile_ns(p) {
                    metrics.insert(format!("latency-{name}"), ns as f64 / 1e9);
                }
            }
            metrics.insert("latency-count".to_owned(), self.latencies.count() as f64);
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::k2::asked::tests::asked;

    #[test]
    fn of_a_rate_that_was_not_kept_no_latency_is_told() {
        let mut seen = Seen::new().expect("a histogram");
        seen.latencies.record(5_000).expect("a latency");
        (seen.committed, seen.seconds) = (900, 1.0);
        for (rate, told) in [(None, true), (Some(900.0), true), (Some(1_000.0), false)] {
            let asked = Asked {
                rate,
                ..asked("all", 0)
            };
            let metrics = seen.metrics(&asked);
            assert_eq!(metrics.contains_key("latency-p50"), told, "{rate:?}");
            assert_eq!(metrics["throughput"], 900.0);
        }
    }

    #[test]
    fn a_run_with_failures_is_no_measurement() {
        let mut seen = Seen::new().expect("a histogram");
        assert!(Seen::new().expect("a histogram").whole().is_ok());
        seen.fail("it broke".to_owned());
        let error = seen.whole().err().expect("refused").to_string();
        assert!(error.contains("it broke"), "{error}");
    }
}

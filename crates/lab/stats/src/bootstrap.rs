//! The percentile bootstrap (Efron and Tibshirani, "An introduction to the bootstrap", 1993,
//! chapter 13) of a median.

use dyno_random::Random;

use crate::error::{StatsError, check};
use crate::summary::{median_in_place, quantile_of_sorted};

/// Resamples behind every interval of this crate: the ends of a 95% interval then rest on 50
/// resamples each.
const BOOTSTRAP_RESAMPLES: usize = 2_000;

/// Share of resamples inside an interval.
pub(crate) const LEVEL: f64 = 0.95;

/// A 95% interval, with both ends inside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end, in the unit of the numbers.
    pub low: f64,
    /// Upper end, in the same unit.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The 95% interval of the median of `values`, by percentile bootstrap from `seed`. With one
/// number both ends are that number: the caller must show n beside it.
///
/// # Errors
/// On an empty list or a number that is not finite.
pub fn median_interval(values: &[f64], seed: u64) -> Result<Interval, StatsError> {
    check("an interval", 1, values)?;
    let mut random = Random::new(seed);
    let mut resample = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..BOOTSTRAP_RESAMPLES)
        // The buffer is drawn anew each time, so that `median_in_place` may leave it in any order.
        .map(|_| {
            for slot in &mut resample {
                *slot = values[random.index(values.len())];
            }
            median_in_place(&mut resample)
        })
        .collect();
    let middle = median_in_place(&mut values.to_vec());
    Ok(percentile_interval(&mut medians, middle))
}

/// The interval that holds [`LEVEL`] of `estimates`, widened if need be to hold the estimate from
/// the data itself, which a resample of few numbers can miss.
fn percentile_interval(estimates: &mut [f64], estimate: f64) -> Interval {
    estimates.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - LEVEL) / 2.0;
    Interval {
        low: quantile_of_sorted(estimates, tail).min(estimate),
        high: quantile_of_sorted(estimates, 1.0 - tail).max(estimate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::median;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_the_exact_distribution() {
        // For n = 5 the bootstrap median is the k-th order statistic with known probability
        // (Efron 1982): 0.0579, 0.2592, 0.3657, 0.2592, 0.0579. So both 2.5% ends are the extremes.
        let interval = median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 1).unwrap();
        assert_eq!(
            interval,
            Interval {
                low: 1.0,
                high: 5.0
            }
        );
    }

    #[test]
    fn covers_the_true_median_about_95_times_in_100() {
        let mut random = Random::new(42);
        let trials = 400;
        let hits = (0..trials)
            .filter(|&seed| {
                let x: Vec<f64> = (0..25).map(|_| random.fraction()).collect();
                median_interval(&x, seed).unwrap().contains(0.5)
            })
            .count();
        let coverage = hits as f64 / trials as f64;
        assert!((0.91..=0.985).contains(&coverage), "{coverage}");
    }

    proptest! {
        #[test]
        fn holds_the_median(x in prop::collection::vec(-1e6f64..1e6, 1..30), seed: u64) {
            let interval = median_interval(&x, seed).unwrap();
            prop_assert!(interval.contains(median(&x).unwrap()));
        }
    }
}

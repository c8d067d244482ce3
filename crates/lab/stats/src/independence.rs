//! How many independent samples a series of windows is worth: windows of one run follow each
//! other, and counting them as independent makes intervals too narrow.

use crate::error::{StatsError, check};
use crate::summary::variance;

/// Autocorrelation of `values` at `lag`, -1 to 1; zero when all numbers are equal.
///
/// # Errors
/// On a number that is not finite or a list not longer than `lag`.
pub fn autocorrelation(values: &[f64], lag: usize) -> Result<f64, StatsError> {
    check("an autocorrelation", lag + 1, values)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let total: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    if total == 0.0 {
        return Ok(0.0);
    }
    let shifted = values.iter().zip(&values[lag..]);
    Ok(shifted.map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>() / total)
}

/// The number of independent samples with the same information on the mean:
/// `n / (1 + 2 sum of autocorrelations)`, the sum cut where a pair of neighbouring lags is no
/// longer positive in sum (Geyer, "Practical Markov chain Monte Carlo", 1992). Between 1 and n.
///
/// # Errors
/// On an empty list or a number that is not finite.
pub fn effective_sample_size(values: &[f64]) -> Result<f64, StatsError> {
    check("an effective sample size", 1, values)?;
    let n = values.len();
    // Pairs are (0,1), (2,3)...; lag 0 is 1, so the sum over pairs is 1 + the sum over lags.
    let mut pairs = 0.0;
    for lag in (0..n.saturating_sub(1)).step_by(2) {
        let pair = autocorrelation(values, lag)? + autocorrelation(values, lag + 1)?;
        if pair <= 0.0 {
            break;
        }
        pairs += pair;
    }
    let worth = n as f64 / (2.0 * pairs - 1.0).max(1.0);
    Ok(worth.clamp(1.0, n as f64))
}

/// The mean of a series with a standard error that allows for correlation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchMeans {
    /// Mean of the batches.
    pub mean: f64,
    /// Standard error of the mean, from the spread between batches.
    pub standard_error: f64,
    /// Batches.
    pub batches: usize,
    /// Numbers per batch; what is left over at the start, the warmest-up part kept, is not used.
    pub batch_len: usize,
}

/// Batch means (Law and Kelton, "Simulation modeling and analysis", chapter 9): neighbours are
/// averaged into `batches` groups long enough to be nearly independent.
///
/// # Errors
/// On fewer than two batches, fewer numbers than batches, or a number that is not finite.
pub fn batch_means(values: &[f64], batches: usize) -> Result<BatchMeans, StatsError> {
    check("batch means", batches.max(2), values)?;
    if batches < 2 {
        let value = batches as f64;
        return Err(StatsError::OutOfRange {
            name: "batches",
            value,
            range: "at least 2",
        });
    }
    let batch_len = values.len() / batches;
    let used = &values[values.len() - batch_len * batches..];
    let means: Vec<f64> = used
        .chunks_exact(batch_len)
        .map(|b| b.iter().sum::<f64>() / batch_len as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / batches as f64;
    let standard_error = (variance(&means)? / batches as f64).sqrt();
    Ok(BatchMeans {
        mean,
        standard_error,
        batches,
        batch_len,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn autoregressive(phi: f64, n: usize) -> Vec<f64> {
        let mut random = Random::new(11);
        let mut x = 0.0;
        (0..n)
            .map(|_| {
                x = phi * x + random.unit() - 0.5;
                x
            })
            .collect()
    }

    #[test]
    fn autocorrelation_by_hand() {
        // 1 2 3 4: mean 2.5, squares 5; lag 1: 0.75 - 0.25 + 0.75 = 1.25.
        assert!((autocorrelation(&[1.0, 2.0, 3.0, 4.0], 1).unwrap() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn effective_size_of_a_known_process() {
        // An AR(1) series is worth n (1 - phi) / (1 + phi).
        for (phi, expected) in [(0.0, 20_000.0), (0.5, 6_666.7), (0.9, 1_052.6)] {
            let worth = effective_sample_size(&autoregressive(phi, 20_000)).unwrap();
            assert!(
                (worth / expected - 1.0).abs() < 0.2,
                "phi {phi}: {worth} for {expected}"
            );
        }
    }

    #[test]
    fn batches_widen_the_error_of_a_correlated_series() {
        let x = autoregressive(0.9, 20_000);
        let naive = (variance(&x).unwrap() / x.len() as f64).sqrt();
        let batched = batch_means(&x, 20).unwrap().standard_error;
        // The true factor is sqrt(19) = 4.36.
        assert!(
            (2.8..6.5).contains(&(batched / naive)),
            "{}",
            batched / naive
        );
        assert!(batch_means(&x, 1).is_err());
    }
}

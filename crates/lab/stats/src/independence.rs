//! How much neighbours in a series of windows resemble each other: counting them as independent
//! makes intervals too narrow.

use crate::error::{StatsError, check};

/// Autocorrelation of `values` at `lag`, -1 to 1; zero when all numbers are equal.
///
/// # Errors
/// On a number that is not finite or a list not longer than `lag`.
pub(crate) fn autocorrelation(values: &[f64], lag: usize) -> Result<f64, StatsError> {
    check("an autocorrelation", lag + 1, values)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let total: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    // Equal numbers would divide zero by zero. A rate that never changes has nothing to correct
    // for.
    if total == 0.0 {
        return Ok(0.0);
    }
    let shifted = values.iter().zip(&values[lag..]);
    Ok(shifted.map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>() / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autocorrelation_by_hand() {
        // 1 2 3 4: mean 2.5, squares 5; lag 1: 0.75 - 0.25 + 0.75 = 1.25.
        assert!((autocorrelation(&[1.0, 2.0, 3.0, 4.0], 1).unwrap() - 0.25).abs() < 1e-12);
    }
}

//! Location and spread of one list of numbers.

use crate::error::{StatsError, check};

/// Quantile `p` (0 to 1) of numbers in rising order, of which there is at least one, by definition
/// 7 of Hyndman and Fan ("Sample quantiles in statistical packages", 1996): linear between the
/// order statistics around `(n - 1) p`. It is the default of R and NumPy.
pub(crate) fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let rank = (sorted.len() - 1) as f64 * p;
    let below = rank.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let part = rank - below as f64;
    sorted[below] + (sorted[above] - sorted[below]) * part
}

/// The median: the middle number, or the mean of the two in the middle.
///
/// # Errors
/// On an empty list or a number that is not finite.
pub fn median(values: &[f64]) -> Result<f64, StatsError> {
    check("a median", 1, values)?;
    Ok(median_in_place(&mut values.to_vec()))
}

/// The median of a scratch buffer that is not empty; its order is lost.
pub(crate) fn median_in_place(values: &mut [f64]) -> f64 {
    let n = values.len();
    let (below, middle, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let middle = *middle;
    if n % 2 == 1 {
        return middle;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // The sum of the two could overflow.
    lower + (middle - lower) / 2.0
}

/// The arithmetic mean.
///
/// # Errors
/// On an empty list or a number that is not finite.
pub(crate) fn mean(values: &[f64]) -> Result<f64, StatsError> {
    check("a mean", 1, values)?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

/// The sample variance, with `n - 1` below the line, in the square of the unit. (Not the range
/// over the mean, which some reports print under this name.)
///
/// # Errors
/// On fewer than two numbers or a number that is not finite.
pub(crate) fn variance(values: &[f64]) -> Result<f64, StatsError> {
    check("a variance", 2, values)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Ok(squares / (values.len() - 1) as f64)
}

/// Standard deviation over mean: 0.02 stands for a spread of 2%.
///
/// # Errors
/// On fewer than two numbers, a number that is not finite, or a mean of zero.
pub fn coefficient_of_variation(values: &[f64]) -> Result<f64, StatsError> {
    let deviation = variance(values)?.sqrt();
    let mean = mean(values)?;
    if mean == 0.0 {
        return Err(StatsError::OutOfRange {
            name: "mean",
            value: mean,
            range: "other than zero",
        });
    }
    Ok(deviation / mean.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_follow_definition_7() {
        // R: quantile(c(1, 2, 4, 8), c(0, .1, .25, .5, .9, 1), type = 7)
        let x = [1.0, 2.0, 4.0, 8.0];
        for (p, expected) in [
            (0.0, 1.0),
            (0.1, 1.3),
            (0.25, 1.75),
            (0.5, 3.0),
            (0.9, 6.8),
            (1.0, 8.0),
        ] {
            let got = quantile_of_sorted(&x, p);
            assert!((got - expected).abs() < 1e-12, "p = {p}: {got}");
        }
    }

    #[test]
    fn variance_has_n_minus_1() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 32, so 32/7.
        let x = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert!((variance(&x).unwrap() - 32.0 / 7.0).abs() < 1e-12);
        assert!(
            (coefficient_of_variation(&x).unwrap() - (32.0f64 / 7.0).sqrt() / 5.0).abs() < 1e-12
        );
    }

    #[test]
    fn broken_numbers_are_named() {
        let error = median(&[1.0, f64::NAN]).unwrap_err();
        assert!(error.to_string().starts_with("number 1 is NaN"), "{error}");
        assert_eq!(
            median(&[]).unwrap_err().to_string(),
            "a median needs at least 1 numbers and got 0"
        );
    }

    proptest! {
        #[test]
        fn median_is_the_middle_quantile(mut x in prop::collection::vec(-1e9f64..1e9, 1..50)) {
            let m = median(&x).unwrap();
            x.sort_unstable_by(f64::total_cmp);
            prop_assert!((m - quantile_of_sorted(&x, 0.5)).abs() <= 1e-6);
        }
    }
}

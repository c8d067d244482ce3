//! Numbers far from the rest. They are reported, never removed.

use crate::error::{StatsError, check};
use crate::summary::{median_in_place, quantile_of_sorted};

/// Tukey's fences ("Exploratory data analysis", 1977): quartiles -/+ 1.5 and 3 interquartile
/// ranges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fences {
    /// Below is an extreme outlier.
    pub far_low: f64,
    /// Below is an outlier.
    pub low: f64,
    /// Above is an outlier.
    pub high: f64,
    /// Above is an extreme outlier.
    pub far_high: f64,
}

impl Fences {
    /// Positions of the numbers outside the inner fences.
    pub fn outside(&self, values: &[f64]) -> Vec<usize> {
        positions(values, |v| v < self.low || v > self.high)
    }

    /// Positions of the numbers outside the outer fences.
    pub fn far_outside(&self, values: &[f64]) -> Vec<usize> {
        positions(values, |v| v < self.far_low || v > self.far_high)
    }
}

fn positions(values: &[f64], test: impl Fn(f64) -> bool) -> Vec<usize> {
    (0..values.len()).filter(|&i| test(values[i])).collect()
}

/// The fences of `values`; quartiles as in [`crate::quantile`].
///
/// # Errors
/// On fewer than four numbers or a number that is not finite.
pub fn tukey_fences(values: &[f64]) -> Result<Fences, StatsError> {
    check("fences", 4, values)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (q1, q3) = (
        quantile_of_sorted(&sorted, 0.25),
        quantile_of_sorted(&sorted, 0.75),
    );
    let range = q3 - q1;
    Ok(Fences {
        far_low: q1 - 3.0 * range,
        low: q1 - 1.5 * range,
        high: q3 + 1.5 * range,
        far_high: q3 + 3.0 * range,
    })
}

/// Modified z-scores, 0.6745 (x - median) / MAD (Iglewicz and Hoaglin, "How to detect and handle
/// outliers", 1993). When more than half of the numbers are equal the MAD is zero; then the mean
/// absolute deviation with its factor 1.253314 takes its place, and equal numbers all score zero.
///
/// # Errors
/// On fewer than three numbers or a number that is not finite.
pub fn modified_z_scores(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    check("a modified z-score", 3, values)?;
    let median = median_in_place(&mut values.to_vec());
    let mut deviations: Vec<f64> = values.iter().map(|v| (v - median).abs()).collect();
    let mean_deviation = deviations.iter().sum::<f64>() / deviations.len() as f64;
    let mad = median_in_place(&mut deviations);
    let scale = if mad > 0.0 {
        mad / 0.6745
    } else {
        mean_deviation * 1.253_314
    };
    Ok(values
        .iter()
        .map(|v| {
            if scale > 0.0 {
                (v - median) / scale
            } else {
                0.0
            }
        })
        .collect())
}

/// Positions of the numbers whose modified z-score is beyond 3.5, the limit that Iglewicz and
/// Hoaglin recommend.
///
/// # Errors
/// As [`modified_z_scores`].
pub fn outliers_by_modified_z(values: &[f64]) -> Result<Vec<usize>, StatsError> {
    Ok(positions(&modified_z_scores(values)?, |z| z.abs() > 3.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_of_a_textbook_list() {
        // 1..=9 and 30: quartiles 3.25 and 7.75, range 4.5, inner fences -3.5 and 14.5.
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 30.0];
        let fences = tukey_fences(&x).unwrap();
        assert_eq!((fences.low, fences.high), (-3.5, 14.5));
        assert_eq!(fences.outside(&x), [9]);
        assert_eq!(fences.far_outside(&x), [9]);
    }

    #[test]
    fn modified_z_of_a_worked_example() {
        // Median 2.5, deviations 0.4 0.3 0.1 0.1 0.3 7.5, so the MAD is 0.3.
        let x = [2.1, 2.2, 2.4, 2.6, 2.8, 10.0];
        let z = modified_z_scores(&x).unwrap();
        assert!((z[5] - 0.6745 * 7.5 / 0.3).abs() < 1e-9, "{z:?}");
        assert_eq!(outliers_by_modified_z(&x).unwrap(), [5]);
    }

    #[test]
    fn equal_numbers_have_no_outlier() {
        assert_eq!(modified_z_scores(&[4.0; 5]).unwrap(), [0.0; 5]);
        let one_off = outliers_by_modified_z(&[4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 9.0]);
        assert_eq!(one_off.unwrap(), [8]);
    }
}

//! A hint that numbers come from two modes, where a median can jump from one to the other.

use crate::error::{StatsError, check};

/// Numbers below which the shape of a distribution cannot be judged.
const N_MIN: usize = 8;
/// Sarle's coefficient of the uniform distribution.
const COEFFICIENT_MIN: f64 = 5.0 / 9.0;
/// A uniform distribution cut in the middle has D = 3.46; the rest allows for few numbers.
const SEPARATION_MIN: f64 = 5.0;
/// A group must hold two numbers and a tenth of them, else it is an outlier.
const SHARE_MIN: f64 = 0.1;

/// Two modes, when three tests agree: Sarle's coefficient `(skewness^2 + 1) / kurtosis`, both from
/// plain moments (Ellison, American Journal of Botany 1987; the form corrected for sample size
/// cannot reach its own bound below ten numbers), exceeds the 5/9 of a uniform distribution; the
/// cut that minimises the variance within the two groups (Otsu 1979) leaves Ashman's `D = sqrt(2)
/// |m1 - m2| / sqrt(s1^2 + s2^2)` (Ashman, Bird and Zepf, AJ 1994) of 5 or more; and each group
/// holds at least a tenth of the numbers. The usual bound of D is 2, but that is for fitted
/// mixtures: a hard cut through one normal already gives 2.6.
///
/// `false` when they disagree or n is below 8: a hint, not a test with a known error rate.
///
/// # Errors
/// On a number that is not finite.
pub(crate) fn two_modes(values: &[f64]) -> Result<bool, StatsError> {
    check("a mode hint", 0, values)?;
    if values.len() < N_MIN {
        return Ok(false);
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let coefficient = sarle(&sorted);
    let cut = otsu_cut(&sorted);
    let (low, high) = sorted.split_at(cut);
    let ((m1, v1), (m2, v2)) = (moments(low), moments(high));
    let deviation = (v1 + v2).sqrt();
    let gap = 2f64.sqrt() * (m2 - m1);
    let separation = if deviation > 0.0 {
        gap / deviation
    } else {
        // Two groups of equal numbers each are as separate as can be.
        gap * f64::INFINITY
    };
    let smaller = low.len().min(high.len());
    Ok(coefficient > COEFFICIENT_MIN
        && separation >= SEPARATION_MIN
        && smaller >= 2
        && smaller as f64 >= SHARE_MIN * sorted.len() as f64)
}

/// Mean and variance (n below the line) of numbers that are not empty.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (
        mean,
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n,
    )
}

/// Zero when all numbers are equal, so that no mode is seen.
fn sarle(values: &[f64]) -> f64 {
    let (mean, m2) = moments(values);
    if m2 == 0.0 {
        return 0.0;
    }
    let n = values.len() as f64;
    let central = |power: i32| values.iter().map(|v| (v - mean).powi(power)).sum::<f64>() / n;
    let skewness = central(3) / m2.powf(1.5);
    (skewness.powi(2) + 1.0) / (central(4) / m2.powi(2))
}

/// Length of the lower group at the cut with the largest variance between the groups.
fn otsu_cut(sorted: &[f64]) -> usize {
    let total: f64 = sorted.iter().sum();
    let n = sorted.len() as f64;
    let (mut best, mut cut, mut below) = (f64::NEG_INFINITY, 1, 0.0);
    for i in 1..sorted.len() {
        below += sorted[i - 1];
        let (n1, n2) = (i as f64, n - i as f64);
        let between = n1 * n2 * (below / n1 - (total - below) / n2).powi(2);
        if between > best {
            (best, cut) = (between, i);
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_random::Random;

    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0
    }

    #[test]
    fn two_clusters_are_seen() {
        let x = [10.0, 10.1, 9.9, 10.05, 9.95, 12.0, 12.1, 11.9, 12.05, 11.95];
        assert!(two_modes(&x).unwrap());
        assert_eq!(
            otsu_cut(&{
                let mut sorted = x;
                sorted.sort_unstable_by(f64::total_cmp);
                sorted
            }),
            5
        );
    }

    #[test]
    fn sarle_of_known_shapes() {
        // Two equal points have skewness 0 and kurtosis 1; a fine uniform grid has kurtosis 9/5.
        assert!((sarle(&[0.0, 0.0, 1.0, 1.0]) - 1.0).abs() < 1e-12);
        let grid: Vec<f64> = (0..1000).map(f64::from).collect();
        assert!((sarle(&grid) - 5.0 / 9.0).abs() < 1e-4);
    }

    #[test]
    fn one_mode_and_one_outlier_are_not_two_modes() {
        let mut random = Random::new(3);
        let false_hints = (0..500)
            .filter(|_| {
                let x: Vec<f64> = (0..20).map(|_| normal(&mut random)).collect();
                two_modes(&x).unwrap()
            })
            .count();
        assert!(false_hints <= 5, "{false_hints} of 500");
        let outlier = [1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.0, 1.1, 9.0];
        assert!(!two_modes(&outlier).unwrap());
        assert!(!two_modes(&[5.0; 12]).unwrap());
    }
}

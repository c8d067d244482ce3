//! Exact intervals and p-values from ranks, for few numbers of any distribution.
//!
//! Both statistics count candidates for the effect: the means of all pairs of differences (Wilcoxon
//! 1945, Walsh 1949) where two systems share blocks, and all differences between two lists
//! (Mann and Whitney 1947) where they share none. How many candidates fall below the truth has a
//! known distribution whatever the noise is, so the interval that is cut off the sorted candidates
//! has a known level too (Hodges and Lehmann, "Estimates of location based on rank tests", 1963).

use crate::bootstrap::{Interval, LEVEL};

/// Above this many numbers on a side the distribution is taken as normal.
const EXACT_MAX: usize = 40;

/// An interval of the effect, and the two-sided p-value of "the effect is zero".
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked {
    pub(crate) interval: Interval,
    pub(crate) p_value: f64,
}

/// Ranks paired differences. The level is the largest attainable one whose error stays below 5%;
/// five differences attain 93.75% at most, which is then taken.
pub(crate) fn signed_rank(differences: &[f64]) -> Ranked {
    let n = differences.len();
    let mut means = Vec::with_capacity(n * (n + 1) / 2);
    for (i, x) in differences.iter().enumerate() {
        means.extend(differences[i..].iter().map(|y| (x + y) / 2.0));
    }
    let count = n as f64;
    let variance = count * (count + 1.0) * (2.0 * count + 1.0) / 24.0;
    ranked(
        means,
        (n <= EXACT_MAX).then(|| signed_rank_sums(n)),
        variance,
    )
}

/// Ranks the differences between two lists that share no block.
pub(crate) fn rank_sum(x: &[f64], y: &[f64]) -> Ranked {
    let differences = x.iter().flat_map(|x| y.iter().map(move |y| x - y));
    let (m, n) = (x.len(), y.len());
    let exact = m.max(n) <= EXACT_MAX;
    let variance = (m * n * (m + n + 1)) as f64 / 12.0;
    ranked(
        differences.collect(),
        exact.then(|| rank_sums(m, n)),
        variance,
    )
}

/// Cuts the interval off the candidates. `exact` has the probability of each count of candidates
/// below the truth.
fn ranked(mut candidates: Vec<f64>, exact: Option<Vec<f64>>, variance: f64) -> Ranked {
    candidates.sort_unstable_by(f64::total_cmp);
    let all = candidates.len();
    let middle = all as f64 / 2.0;
    // The probability that at most `count` candidates lie below the truth.
    let tail = |count: f64| match &exact {
        Some(exact) => exact.iter().take(count as usize + 1).sum::<f64>(),
        None => normal_tail((count + 0.5 - middle) / variance.sqrt()),
    };
    let error = (1.0 - LEVEL) / 2.0;
    let cut = (1..=(all - 1) / 2).take_while(|&cut| tail(cut as f64) <= error);
    // With few numbers no cut keeps the error below 5%, so the interval is the whole range of the
    // candidates. With five its level is 93.75%.
    let cut = cut.last().unwrap_or(0);
    // Candidates at zero count half, as ties do.
    let below = candidates.iter().filter(|&&x| x < 0.0).count() as f64;
    let above = candidates.iter().filter(|&&x| x > 0.0).count() as f64;
    // Half the ties go to each side, so equal lists get a p-value of 1.
    let rarer = (all as f64 - (below - above).abs()) / 2.0;
    Ranked {
        interval: Interval {
            low: candidates[cut],
            high: candidates[all - 1 - cut],
        },
        p_value: (2.0 * tail(rarer)).min(1.0),
    }
}

/// The distribution of the sum of those ranks 1 to `n` that a fair coin chooses.
fn signed_rank_sums(n: usize) -> Vec<f64> {
    let mut sums = vec![0.0; n * (n + 1) / 2 + 1];
    sums[0] = 1.0;
    for rank in 1..=n {
        // Going down, so that `sums[sum - rank]` is still that of the ranks before this one.
        for sum in (0..sums.len()).rev() {
            let with = if sum >= rank { sums[sum - rank] } else { 0.0 };
            sums[sum] = (sums[sum] + with) / 2.0;
        }
    }
    sums
}

/// The distribution of the number of pairs in which the number of the first list is the lower:
/// the largest of all numbers is of the first list in `m` orders of `m + n`, and then stands above
/// all `n` of the second, so it adds none; otherwise it adds `m`.
fn rank_sums(m: usize, n: usize) -> Vec<f64> {
    // `row[j]` is the distribution for i and j numbers, built up over i.
    let mut row = vec![vec![1.0]; n + 1];
    for i in 1..=m {
        let mut next = vec![vec![1.0]];
        for j in 1..=n {
            let mut sums = vec![0.0; i * j + 1];
            let first = i as f64 / (i + j) as f64;
            for (sum, p) in row[j].iter().enumerate() {
                sums[sum] += first * p;
            }
            for (sum, p) in next[j - 1].iter().enumerate() {
                sums[sum + i] += (1.0 - first) * p;
            }
            next.push(sums);
        }
        row = next;
    }
    row.swap_remove(n)
}

/// The share of a normal distribution below `z`, to seven digits (Abramowitz and Stegun, "Handbook
/// of mathematical functions", 26.2.17).
fn normal_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let factors = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum = factors
        .iter()
        .rev()
        .fold(0.0, |sum, factor| t * (factor + sum));
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let beyond = density * sum;
    if z < 0.0 { beyond } else { 1.0 - beyond }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fisher's example ("The design of experiments", 1935): heights of 15 pairs of maize.
    const DARWIN: [f64; 15] = [
        49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0,
    ];

    #[test]
    fn signed_ranks_agree_with_published_tables() {
        // Wilcoxon's two-sided 5% points: none for 5, 0 for 6, 3 for 8, 8 for 10.
        for (n, most) in [(6, 0), (7, 2), (8, 3), (10, 8), (15, 25)] {
            let sums = signed_rank_sums(n);
            let tail = |count: usize| sums[..=count].iter().sum::<f64>();
            assert!(tail(most) <= 0.025 && tail(most + 1) > 0.025, "{n}");
        }
        // R: wilcox.test(darwin) says V = 96, p-value = 0.04126.
        let seen = signed_rank(&DARWIN);
        assert!((seen.p_value - 0.041_26).abs() < 1e-5, "{seen:?}");
        assert!(seen.interval.low > 0.0);
    }

    #[test]
    fn rank_sums_agree_with_published_tables() {
        // Mann and Whitney's two-sided 5% points: 2 for 5 and 5, 5 for 6 and 6, 13 for 8 and 8.
        for (m, n, most) in [(5, 5, 2), (6, 6, 5), (8, 8, 13), (5, 8, 6), (10, 10, 23)] {
            let sums = rank_sums(m, n);
            assert!((sums.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let tail = |count: usize| sums[..=count].iter().sum::<f64>();
            assert!(tail(most) <= 0.025 && tail(most + 1) > 0.025, "{m} {n}");
        }
        let apart = rank_sum(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]);
        assert!((apart.p_value - 2.0 / 252.0).abs() < 1e-12, "{apart:?}");
    }

    #[test]
    fn many_numbers_are_judged_as_the_exact_ones() {
        let sums = rank_sums(40, 40);
        for count in [500, 600, 650, 700, 800] {
            let exact: f64 = sums[..=count].iter().sum();
            let sd = (40.0f64 * 40.0 * 81.0 / 12.0).sqrt();
            let normal = normal_tail((count as f64 + 0.5 - 800.0) / sd);
            assert!((exact - normal).abs() < 2e-3, "{count}: {exact} {normal}");
        }
    }
}

//! The randomisation test of paired differences.

use crate::random::Random;

/// Up to this many blocks every sign pattern is tried (65 536 of them); above, a random part.
const EXACT_BLOCKS_MAX: usize = 16;
/// Patterns drawn when there are too many to try.
const PATTERNS: u64 = 20_000;

/// Two-sided p-value of "the mean difference is zero": the share of sign patterns whose mean is at
/// least as far from zero (Fisher, "The design of experiments", 1935). It is exact when the order
/// inside each block was random, whatever the distribution, and cannot go below 2 / 2^n.
pub(crate) fn p_value(differences: &[f64], random: &mut Random) -> f64 {
    let seen = differences.iter().sum::<f64>().abs();
    // Sums in another order round differently, and a pattern equal to the data must count.
    let limit = seen - seen * 1e-9;
    let n = differences.len();
    if n <= EXACT_BLOCKS_MAX {
        let patterns = 1u64 << n;
        let far = (0..patterns).filter(|&bits| flipped(differences, &[bits]).abs() >= limit);
        return far.count() as f64 / patterns as f64;
    }
    let mut bits = vec![0u64; n.div_ceil(64)];
    let mut far = 0u64;
    for _ in 0..PATTERNS {
        bits.iter_mut().for_each(|word| *word = random.next_u64());
        far += u64::from(flipped(differences, &bits).abs() >= limit);
    }
    // The data themselves are one of the patterns, so the share is never zero.
    (far + 1) as f64 / (PATTERNS + 1) as f64
}

fn flipped(differences: &[f64], bits: &[u64]) -> f64 {
    let sign = |i: usize| {
        if bits[i / 64] >> (i % 64) & 1 == 1 {
            -1.0
        } else {
            1.0
        }
    };
    differences
        .iter()
        .enumerate()
        .map(|(i, d)| d * sign(i))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_for_darwins_maize() {
        // Fisher's own example, height differences of 15 pairs in eighths of an inch; he finds
        // 1 726 of 32 768 patterns as far out, a p-value of 0.05267.
        let darwin: [f64; 15] = [
            49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0,
            -48.0,
        ];
        let p = p_value(&darwin, &mut Random::new(1));
        assert!((p - 1726.0 / 32768.0).abs() < 1e-12, "{p}");
    }

    #[test]
    fn drawn_patterns_agree_with_exact_ones() {
        let mut doubled: Vec<f64> = (0..18).map(|i| f64::from(i % 5) - 1.2).collect();
        let drawn = p_value(&doubled, &mut Random::new(2));
        doubled.truncate(16);
        let exact = p_value(&doubled, &mut Random::new(2));
        assert!(
            (0.0..=0.2).contains(&drawn) && (0.0..=0.2).contains(&exact),
            "{drawn} {exact}"
        );
    }
}

//! What this machine calls a difference when there is none.

use crate::compare::{Better, Block, compare, compare_runs};
use crate::error::StatsError;

/// Two programs within 1% are not told apart, however quiet the machine: few quiet blocks can agree
/// by luck, and so small a difference can come from where the linker put the code.
const LEAST: f64 = 0.01;

/// A difference this many standard errors outside the band is shown in about four runs of five: the
/// quantile of the normal distribution at 0.8, which is 0.842, and half as much again because the
/// band itself differs from run to run. The simulation in `tests/truth.rs` checks it.
const POWER_Z: f64 = 1.3;

/// The ratios that identical programs showed; symmetric around 1 on a log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseBand {
    /// Logarithm of the upper end.
    half_width: f64,
    /// Standard error of the logarithm of a ratio.
    error: f64,
    /// Blocks of identical arms behind it.
    pub n: usize,
}

impl NoiseBand {
    /// Upper end of the band less 1: 0.02 is ±2%.
    pub fn share(&self) -> f64 {
        self.half_width.exp_m1()
    }

    /// Whether a ratio is no more than noise.
    pub fn contains(&self, ratio: f64) -> bool {
        ratio.ln().abs() <= self.half_width
    }

    /// The smallest difference that would be shown in about four runs of five: 0.05 is 5%.
    pub fn smallest_effect(&self) -> f64 {
        (self.half_width + POWER_Z * self.error).exp_m1()
    }

    /// What the band would be with `n` blocks of the same noise: errors shrink with the square
    /// root.
    pub fn with_blocks(&self, n: usize) -> Self {
        let factor = (self.n as f64 / n as f64).sqrt();
        Self {
            half_width: (self.half_width * factor).max(LEAST.ln_1p()),
            error: self.error * factor,
            n,
        }
    }

    /// The wider of two bands that must both hold; the fewer blocks count.
    pub fn widest(self, other: Self) -> Self {
        Self {
            half_width: self.half_width.max(other.half_width),
            error: self.error.max(other.error),
            n: self.n.min(other.n),
        }
    }

    /// The half width in percent, as reports print it: `±2.0%`.
    pub fn text(&self) -> String {
        format!("±{:.1}%", self.share() * 100.0)
    }
}

/// The band from blocks whose two arms ran the same program: the 95% interval of their ratio, its
/// farther end taken to both sides, and never narrower than 1%.
///
/// # Errors
/// As [`compare`].
pub fn noise_band(blocks: &[Block]) -> Result<NoiseBand, StatsError> {
    let interval = compare(blocks, Better::Higher, None)?.interval;
    Ok(band(interval.low, interval.high, blocks.len()))
}

/// The band from two runs of the same program, which share no block.
///
/// # Errors
/// As [`compare_runs`].
pub fn noise_between(a: &[f64], b: &[f64]) -> Result<NoiseBand, StatsError> {
    let seen = compare_runs(a, b, Better::Higher, None)?;
    Ok(band(seen.interval.low, seen.interval.high, seen.n))
}

fn band(low: f64, high: f64, n: usize) -> NoiseBand {
    let (low, high) = (low.ln(), high.ln());
    NoiseBand {
        // The farther end is taken to both sides: the two arms are the same program, so which of
        // them came out slower is chance.
        half_width: low.abs().max(high.abs()).max(LEAST.ln_1p()),
        // A 95% interval of normal noise reaches 1.96 standard errors to each side.
        error: (high - low) / (2.0 * 1.96),
        n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(ratios: &[f64]) -> Vec<Block> {
        ratios.iter().map(|&a| Block { a, b: 1.0 }).collect()
    }

    #[test]
    fn band_is_the_farther_end_on_both_sides() {
        let band = noise_band(&blocks(&[0.99, 1.0, 1.04, 1.01, 0.98])).unwrap();
        assert!((band.share() - 0.04).abs() < 1e-9, "{band:?}");
        assert!(band.contains(1.039) && band.contains(1.0 / 1.039) && !band.contains(1.041));
        assert_eq!((band.n, band.text().as_str()), (5, "±4.0%"));
        assert!(band.smallest_effect() > 0.04);
    }

    #[test]
    fn one_percent_holds_when_blocks_agree() {
        let band = noise_band(&blocks(&[1.0; 6])).unwrap();
        assert!(band.contains(1.0099) && !band.contains(1.011));
    }

    #[test]
    fn more_blocks_narrow_the_band() {
        let five = noise_band(&blocks(&[0.9, 1.0, 1.1, 1.05, 0.95])).unwrap();
        let twenty = five.with_blocks(20);
        assert!((twenty.half_width - five.half_width / 2.0).abs() < 1e-12);
        assert!(twenty.smallest_effect() < five.smallest_effect());
        assert_eq!(five.widest(twenty).n, 5);
    }
}

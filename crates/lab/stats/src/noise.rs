//! What this machine calls a difference when there is none.

use crate::compare::{Block, CompareOptions, compare};
use crate::error::StatsError;

/// The range of ratios that identical programs show; symmetric around 1 on a log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseBand {
    /// Lower end, at or below 1.
    pub low: f64,
    /// Upper end, `1 / low`.
    pub high: f64,
    /// Blocks of identical arms behind it; zero when only the floor is known.
    pub n: usize,
}

impl NoiseBand {
    /// A band of plus and minus `share` (0.01 is 1%), from no measurement.
    pub fn floor(share: f64) -> Self {
        Self::of_half_width((1.0 + share.max(0.0)).ln(), 0)
    }

    /// Whether a ratio is no more than noise.
    pub fn contains(&self, ratio: f64) -> bool {
        self.low <= ratio && ratio <= self.high
    }

    /// The wider of two bands, with the blocks of both.
    pub fn widest(self, other: Self) -> Self {
        Self::of_half_width(self.high.ln().max(other.high.ln()), self.n + other.n)
    }

    fn of_half_width(half_width: f64, n: usize) -> Self {
        Self {
            low: (-half_width).exp(),
            high: half_width.exp(),
            n,
        }
    }
}

/// The band from blocks whose two arms ran the same program: the 95% interval of their ratio, its
/// farther end taken to both sides, and never narrower than `floor` (0.01 is 1%), because few
/// quiet blocks can agree by luck.
///
/// # Errors
/// As [`compare`].
pub fn noise_band(blocks: &[Block], floor: f64, seed: u64) -> Result<NoiseBand, StatsError> {
    let options = CompareOptions {
        seed,
        ..CompareOptions::default()
    };
    let interval = compare(blocks, &NoiseBand::floor(0.0), &options)?.interval;
    let half_width = interval.low.ln().abs().max(interval.high.ln().abs());
    let floor_half_width = (1.0 + floor.max(0.0)).ln();
    Ok(NoiseBand::of_half_width(
        half_width.max(floor_half_width),
        blocks.len(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn band_is_the_farther_end_on_both_sides() {
        let blocks: Vec<Block> = [0.99, 1.0, 1.04, 1.01, 0.98]
            .iter()
            .map(|&a| Block::single(a, 1.0))
            .collect();
        let band = noise_band(&blocks, 0.001, 1).unwrap();
        assert!((band.high - 1.04).abs() < 1e-9 && (band.low * band.high - 1.0).abs() < 1e-12);
        assert_eq!(band.n, 5);
    }

    #[test]
    fn floor_holds_when_blocks_agree() {
        let band = noise_band(&vec![Block::single(2.0, 2.0); 6], 0.01, 1).unwrap();
        assert!(band.contains(1.0099) && !band.contains(1.011));
        assert_eq!(
            band.widest(NoiseBand::floor(0.1)).high,
            NoiseBand::floor(0.1).high
        );
    }
}

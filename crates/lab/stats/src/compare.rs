//! Which of two systems is better, from blocks in which both ran.

use std::cmp::Ordering;

use crate::bootstrap::{BOOTSTRAP_RESAMPLES, Interval, percentile_interval};
use crate::error::StatsError;
use crate::modes::two_modes;
use crate::noise::NoiseBand;
use crate::random::Random;
use crate::sign_flip;
use crate::summary::median_in_place;

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Rates.
    Higher,
    /// Times, bytes.
    Lower,
}

/// One randomised block: A and B ran next to each other, so they share the machine's mood.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Windows of A's invocation; one number when it has none.
    pub a: Vec<f64>,
    /// Windows of B's invocation.
    pub b: Vec<f64>,
}

impl Block {
    /// A block of one number each.
    pub fn single(a: f64, b: f64) -> Self {
        Self {
            a: vec![a],
            b: vec![b],
        }
    }
}

/// How a comparison is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareOptions {
    /// Direction of the metric.
    pub better: Better,
    /// Below this many blocks no winner is named.
    pub blocks_min: usize,
    /// A winner must win at least this share of the block pairs: medians of a two-mode series can
    /// jump apart while the systems win as often as they lose.
    pub superiority_min: f64,
    /// An interval whose ends are farther apart than this factor decides nothing.
    pub spread_max: f64,
    /// Seeds the bootstrap.
    pub seed: u64,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            better: Better::Higher,
            blocks_min: 5,
            superiority_min: 0.75,
            spread_max: 1.25,
            seed: 0x64_79_6e_6f,
        }
    }
}

/// What may be said about A against B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A is better.
    Faster,
    /// A is worse.
    Slower,
    /// The data show no difference (which does not prove that there is none).
    NoDifference,
    /// The data are too uneven to say anything.
    Unstable,
    /// There are too few blocks to tell any difference, however large.
    NotJudged,
}

impl Verdict {
    /// The words that reports print.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference shown",
            Self::Unstable => "unstable",
            Self::NotJudged => "not judged",
        }
    }

    /// The verdict after a correction for many comparisons ([`crate::holm`]): a winner whose
    /// adjusted p-value exceeds `alpha` is no longer named.
    pub fn corrected(self, adjusted_p: f64, alpha: f64) -> Self {
        match self {
            Self::Faster | Self::Slower if adjusted_p > alpha => Self::NoDifference,
            verdict => verdict,
        }
    }
}

/// The effect of A against B; above 1 means that A is better, for either direction of the metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Blocks.
    pub n: usize,
    /// Ratio of the medians over blocks (a block counts with the median of its windows), turned so
    /// that above 1 is better.
    pub ratio: f64,
    /// 95% interval of the ratio: blocks resampled, then windows inside each arm of a block.
    pub interval: Interval,
    /// Probability that A beats B in one block, ties counting half.
    pub superiority: f64,
    /// Two-sided p-value of the randomisation test on the log ratios of the blocks.
    pub p_value: f64,
    /// What may be said.
    pub verdict: Verdict,
    /// Why, in half a sentence.
    pub reason: String,
}

/// Compares A with B over `blocks`, judged against the noise `band` of the machine.
///
/// The rules, in order. (1) Fewer than `blocks_min` blocks (5: with four the randomisation test
/// cannot go below 1 in 8) are "not judged": such data could not show a difference of any size, so
/// "no difference shown" would say something that was never looked for. (2) A winner is named when
/// the ratio lies outside the band, the interval excludes 1, and A wins at least `superiority_min`
/// of the pairs (or loses as many). (3) Else it is "unstable" when either arm shows two modes, or
/// when the ends of the interval are farther apart than `spread_max`. (4) Else "no difference
/// shown".
///
/// Swapping A and B gives the reciprocal ratio and interval, to rounding.
///
/// # Errors
/// On no blocks, a block with an empty arm, or a number that is not finite and above zero.
pub fn compare(
    blocks: &[Block],
    band: &NoiseBand,
    options: &CompareOptions,
) -> Result<Comparison, StatsError> {
    check_blocks(blocks)?;
    let flip = options.better == Better::Lower;
    let mut arms: [Vec<&[f64]>; 2] = [
        blocks.iter().map(|block| block.a.as_slice()).collect(),
        blocks.iter().map(|block| block.b.as_slice()).collect(),
    ];
    // The same data draw the same resamples whichever side is called A.
    let swap = lexicographic(&arms[0], &arms[1]) == Ordering::Greater;
    if swap {
        arms.swap(0, 1);
    }
    let sign = if swap != flip { -1.0 } else { 1.0 };
    let mut random = Random::new(options.seed);
    let (estimate, mut resampled) = log_ratios(&arms[0], &arms[1], &mut random);
    resampled.iter_mut().for_each(|r| *r *= sign);
    let interval = percentile_interval(&mut resampled, sign * estimate);
    let medians = |arm: &[&[f64]]| -> Vec<f64> {
        arm.iter()
            .map(|windows| median_in_place(&mut windows.to_vec()))
            .collect()
    };
    let (first, second) = (medians(&arms[0]), medians(&arms[1]));
    let logs: Vec<f64> = first
        .iter()
        .zip(&second)
        .map(|(x, y)| (x / y).ln())
        .collect();
    let wins: f64 = arms[0]
        .iter()
        .zip(&arms[1])
        .map(|(x, y)| win_share(x, y))
        .sum();
    let win_share = wins / blocks.len() as f64;
    let mut comparison = Comparison {
        n: blocks.len(),
        ratio: (sign * estimate).exp(),
        interval: Interval {
            low: interval.low.exp(),
            high: interval.high.exp(),
        },
        superiority: if sign < 0.0 {
            1.0 - win_share
        } else {
            win_share
        },
        p_value: sign_flip::p_value(&logs, &mut random),
        verdict: Verdict::NoDifference,
        reason: String::new(),
    };
    let two_mode_arm = two_modes(&first)?.is_some() || two_modes(&second)?.is_some();
    (comparison.verdict, comparison.reason) = judge(&comparison, two_mode_arm, band, options);
    Ok(comparison)
}

fn check_blocks(blocks: &[Block]) -> Result<(), StatsError> {
    if blocks.is_empty() {
        return Err(StatsError::TooFew {
            what: "a comparison",
            needed: 1,
            found: 0,
        });
    }
    for (index, block) in blocks.iter().enumerate() {
        for arm in [&block.a, &block.b] {
            if arm.is_empty() {
                return Err(StatsError::TooFew {
                    what: "each arm of a block",
                    needed: 1,
                    found: 0,
                });
            }
            if let Some(&value) = arm.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
                return Err(StatsError::NotPositive {
                    block: index,
                    value,
                });
            }
        }
    }
    Ok(())
}

fn lexicographic(first: &[&[f64]], second: &[&[f64]]) -> Ordering {
    let pairs = first
        .iter()
        .copied()
        .flatten()
        .zip(second.iter().copied().flatten());
    pairs
        .map(|(x, y)| x.total_cmp(y))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Log of the ratio of medians, from the data and from every resample.
fn log_ratios(first: &[&[f64]], second: &[&[f64]], random: &mut Random) -> (f64, Vec<f64>) {
    let n = first.len();
    let (mut xs, mut ys) = (vec![0.0; n], vec![0.0; n]);
    for i in 0..n {
        xs[i] = median_in_place(&mut first[i].to_vec());
        ys[i] = median_in_place(&mut second[i].to_vec());
    }
    let estimate = (median_in_place(&mut xs) / median_in_place(&mut ys)).ln();
    let mut scratch = Vec::new();
    let resampled = (0..BOOTSTRAP_RESAMPLES)
        .map(|_| {
            for i in 0..n {
                let block = random.index(n);
                xs[i] = resampled_median(first[block], &mut scratch, random);
                ys[i] = resampled_median(second[block], &mut scratch, random);
            }
            (median_in_place(&mut xs) / median_in_place(&mut ys)).ln()
        })
        .collect();
    (estimate, resampled)
}

fn resampled_median(windows: &[f64], scratch: &mut Vec<f64>, random: &mut Random) -> f64 {
    if let [only] = windows {
        return *only;
    }
    scratch.clear();
    scratch.extend((0..windows.len()).map(|_| windows[random.index(windows.len())]));
    median_in_place(scratch)
}

/// Share of the window pairs in which `x` is the greater, ties counting half.
fn win_share(x: &[f64], y: &[f64]) -> f64 {
    let score = |x: &f64, y: &f64| match x.total_cmp(y) {
        Ordering::Greater => 1.0,
        Ordering::Equal => 0.5,
        Ordering::Less => 0.0,
    };
    let wins: f64 = x
        .iter()
        .map(|x| y.iter().map(|y| score(x, y)).sum::<f64>())
        .sum();
    wins / (x.len() * y.len()) as f64
}

fn judge(
    seen: &Comparison,
    two_mode_arm: bool,
    band: &NoiseBand,
    options: &CompareOptions,
) -> (Verdict, String) {
    if seen.n < options.blocks_min {
        let reason = format!("n = {}, and a verdict needs {}", seen.n, options.blocks_min);
        return (Verdict::NotJudged, reason);
    }
    let outside = !band.contains(seen.ratio) && !seen.interval.contains(1.0);
    if outside && seen.ratio > 1.0 && seen.superiority >= options.superiority_min {
        return (Verdict::Faster, "outside the noise band".to_owned());
    }
    if outside && seen.ratio < 1.0 && seen.superiority <= 1.0 - options.superiority_min {
        return (Verdict::Slower, "outside the noise band".to_owned());
    }
    if two_mode_arm {
        return (
            Verdict::Unstable,
            "the samples fall into two modes".to_owned(),
        );
    }
    let spread = seen.interval.high / seen.interval.low;
    if spread > options.spread_max {
        let reason = format!("the ends of the interval differ by a factor of {spread:.2}");
        return (Verdict::Unstable, reason);
    }
    let reason = if band.contains(seen.ratio) {
        format!("inside the noise band of {:.1}%", (band.high - 1.0) * 100.0)
    } else if outside {
        format!("the better median wins only {:.0}% of the pairs", {
            seen.superiority.max(1.0 - seen.superiority) * 100.0
        })
    } else {
        "the interval holds 1".to_owned()
    };
    (Verdict::NoDifference, reason)
}

//! Which of two systems is better: from blocks in which both ran, or from two runs.

use crate::bootstrap::Interval;
use crate::error::StatsError;
use crate::modes::two_modes;
use crate::noise::NoiseBand;
use crate::ranks::{Ranked, rank_sum, signed_rank};
use crate::summary::median_in_place;

/// Below this many blocks nothing is judged: with four, noise alone gives the same sign in all of
/// them once in eight times.
pub const BLOCKS_MIN: usize = 5;

/// An interval whose ends are farther apart than this factor decides nothing.
const SPREAD_MAX: f64 = 1.25;

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better, as with rates.
    Higher,
    /// Less is better, as with times and bytes.
    Lower,
}

/// One randomised block: A and B ran next to each other, so they share the machine's mood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// The metric of A's invocation, above zero.
    pub a: f64,
    /// The metric of B's invocation, above zero.
    pub b: f64,
}

/// What may be said about A against B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A is better by more than noise.
    Faster,
    /// A is worse by more than noise.
    Slower,
    /// The data show no difference (which does not prove that there is none).
    NoDifference,
    /// The data are too uneven to say anything.
    Unstable,
    /// There are too few blocks to tell any difference, or no band was measured.
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
    /// Blocks; of two runs, the samples of the shorter one.
    pub n: usize,
    /// Ratio of the medians, turned so that above 1 is better.
    pub ratio: f64,
    /// 95% interval of the ratio, exact for any noise (93.75% with five blocks, which attain no
    /// more), widened if need be to hold the ratio.
    pub interval: Interval,
    /// Two-sided p-value of "there is no difference", from the same ranks.
    pub p_value: f64,
    /// What may be said by the rules of [`compare`].
    pub verdict: Verdict,
    /// Why, in half a sentence.
    pub reason: String,
}

/// Compares A with B over `blocks`, judged against the noise `band` that the control arm showed.
///
/// The rules, in order. (1) Fewer than [`BLOCKS_MIN`] blocks, or a band that was not measured over
/// so many, are "not judged": such data could not show a difference, so "no difference shown" would
/// say something that was never looked for. (2) A winner is named when the ratio lies outside the
/// band and the interval excludes 1. (3) Else it is "unstable" when either arm shows two modes, or
/// when the ends of the interval are farther apart than a factor of 1.25. (4) Else "no difference
/// shown".
///
/// Swapping A and B gives the reciprocal ratio and interval.
///
/// # Errors
/// On no blocks, or a number that is not finite and above zero.
pub fn compare(
    blocks: &[Block],
    better: Better,
    band: Option<&NoiseBand>,
) -> Result<Comparison, StatsError> {
    let a: Vec<f64> = blocks.iter().map(|block| block.a).collect();
    let b: Vec<f64> = blocks.iter().map(|block| block.b).collect();
    compared(&a, &b, better, band, |a, b| {
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        signed_rank(&differences)
    })
}

/// Compares two runs, A's samples with B's, which share no block: no sample of one is paired with a
/// sample of the other. The rules are those of [`compare`]; `band` must hold what the machine did
/// between the runs, and not only within them.
///
/// # Errors
/// As [`compare`].
pub fn compare_runs(
    a: &[f64],
    b: &[f64],
    better: Better,
    band: Option<&NoiseBand>,
) -> Result<Comparison, StatsError> {
    compared(a, b, better, band, rank_sum)
}

fn compared(
    a: &[f64],
    b: &[f64],
    better: Better,
    band: Option<&NoiseBand>,
    rank: impl Fn(&[f64], &[f64]) -> Ranked,
) -> Result<Comparison, StatsError> {
    let sign = match better {
        Better::Higher => 1.0,
        Better::Lower => -1.0,
    };
    // Logarithms turn ratios into differences, which the ranks need: one half is then as far from 1
    // as two is, and swapping A and B only turns the sign.
    let logs = |values| -> Result<Vec<f64>, StatsError> {
        let logs = logs_of(values)?;
        Ok(logs.iter().map(|log| sign * log).collect())
    };
    let (a_logs, b_logs) = (logs(a)?, logs(b)?);
    let middle = |values: &[f64]| median_in_place(&mut values.to_vec());
    let ratio = (middle(a) / middle(b)).powf(sign);
    let Ranked { interval, p_value } = rank(&a_logs, &b_logs);
    let mut seen = Comparison {
        n: a.len().min(b.len()),
        ratio,
        interval: Interval {
            // The ratio of the medians is not the estimate that belongs to the ranks, so with few
            // uneven numbers it can lie outside their interval.
            low: interval.low.exp().min(ratio),
            high: interval.high.exp().max(ratio),
        },
        p_value,
        verdict: Verdict::NoDifference,
        reason: String::new(),
    };
    let modes = two_modes(a)? || two_modes(b)?;
    (seen.verdict, seen.reason) = judge(&seen, modes, band);
    Ok(seen)
}

fn logs_of(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    if values.is_empty() {
        return Err(StatsError::TooFew {
            what: "a comparison",
            needed: 1,
            found: 0,
        });
    }
    let broken = |v: &f64| !(v.is_finite() && *v > 0.0);
    match values.iter().position(broken) {
        Some(block) => Err(StatsError::NotPositive {
            block,
            value: values[block],
        }),
        None => Ok(values.iter().map(|v| v.ln()).collect()),
    }
}

fn judge(seen: &Comparison, modes: bool, band: Option<&NoiseBand>) -> (Verdict, String) {
    let open = |reason: String| (Verdict::NotJudged, reason);
    if seen.n < BLOCKS_MIN {
        return open(format!("n = {}, and a verdict needs {BLOCKS_MIN}", seen.n));
    }
    let Some(band) = band else {
        return open("no control arm ran, so the noise of this case is not known".to_owned());
    };
    if band.n < BLOCKS_MIN {
        let n = band.n;
        return open(format!(
            "n = {n} in the control arm, and a verdict needs {BLOCKS_MIN}"
        ));
    }
    // Both are asked for. The interval alone calls two equal programs different once in twenty
    // cases, and the band alone does not know how far these blocks scatter.
    let outside = !band.contains(seen.ratio) && !seen.interval.contains(1.0);
    if outside {
        let verdict = if seen.ratio > 1.0 {
            Verdict::Faster
        } else {
            Verdict::Slower
        };
        let reason = format!("outside the noise band of {}", band.text());
        return (verdict, reason);
    }
    let spread = seen.interval.high / seen.interval.low;
    // Two modes and a wide interval hide a difference but do not imitate one, so they are looked at
    // only after no winner was found.
    if modes {
        let reason = "the samples fall into two modes".to_owned();
        (Verdict::Unstable, reason)
    } else if spread > SPREAD_MAX {
        let reason = format!("the ends of the interval differ by a factor of {spread:.2}");
        (Verdict::Unstable, reason)
    } else if band.contains(seen.ratio) {
        let reason = format!("inside the noise band of {}", band.text());
        (Verdict::NoDifference, reason)
    } else {
        (Verdict::NoDifference, "the interval holds 1".to_owned())
    }
}

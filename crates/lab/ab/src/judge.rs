//! What the blocks say, in figures and in a sentence.

use dyno_stats::{Better, Comparison, NoiseBand, Verdict, compare, median, noise_band};
use serde::Serialize;

use crate::measure::{Block, Measured, Run};

/// The difference for which the sentence says how many blocks it takes, unless another was asked
/// about.
const EFFECT: f64 = 0.05;
/// More blocks than this are not recommended: the noise of the machine is the thing to work on.
const BLOCKS_MAX: usize = 2_000;

/// The answer to "is the new command slower?", as an exit code says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// No slowdown is shown, or none beyond what is accepted.
    NotSlower,
    /// The new command takes longer.
    Slower,
    /// The runs are too few or too uneven to tell.
    NotEnoughEvidence,
}

/// One figure of both commands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// `wall time`, `CPU time` or `peak memory`.
    pub name: &'static str,
    /// Unit of the medians: `s` or `B`.
    pub unit: &'static str,
    /// Median of the old command.
    pub old: f64,
    /// Median of the new command.
    pub new: f64,
    /// Old to new: above 1 means that the new command takes less.
    pub ratio: f64,
    /// Lower end of the 95% interval of the ratio.
    pub low: f64,
    /// Upper end of the same interval.
    pub high: f64,
    /// The noise band that the control arm showed: 0.02 is ±2%.
    pub noise: f64,
    /// The smallest difference that these blocks would show in about four comparisons of five.
    pub smallest_effect: f64,
    /// The verdict: `faster` says that the new command takes less.
    pub verdict: &'static str,
    /// What the verdict rests on, in half a sentence.
    pub reason: String,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Blocks that were measured, of three runs each.
    pub blocks: usize,
    /// The figures; wall time first, which alone decides the answer.
    pub figures: Vec<Figure>,
    /// Whether both commands wrote the same to standard output, if that is known.
    pub same_output: Option<bool>,
    /// The answer by wall time alone.
    pub answer: Answer,
    /// The answer in words, with its numbers.
    pub sentence: String,
}

/// Judges what was measured. `max_slowdown` is accepted: with 0.03 a new command that takes 3%
/// longer is not called slower.
pub fn judge(measured: &Measured, max_slowdown: Option<f64>) -> Outcome {
    let blocks = &measured.blocks;
    let memory = |run: &Run| run.peak_bytes.map(|bytes| bytes as f64);
    let figures = [
        figure(blocks, "wall time", "s", |run| Some(run.wall_s)),
        figure(blocks, "CPU time", "s", |run| run.cpu_s),
        figure(blocks, "peak memory", "B", memory),
    ];
    let (answer, sentence) = match compared(blocks, |run| Some(run.wall_s)) {
        Some((seen, band)) => answer(&seen, &band, max_slowdown),
        None => (
            Answer::NotEnoughEvidence,
            "Nothing was measured.".to_owned(),
        ),
    };
    Outcome {
        blocks: blocks.len(),
        figures: figures.into_iter().flatten().collect(),
        same_output: measured.same_output,
        answer,
        sentence,
    }
}

/// Half the width of the interval of the ratio of wall times, as a share; `None` without blocks.
pub(crate) fn half_width(blocks: &[Block]) -> Option<f64> {
    let (seen, _) = compared(blocks, |run| Some(run.wall_s))?;
    Some((seen.interval.high / seen.interval.low).sqrt() - 1.0)
}

/// New against old, judged by the noise between old and control. `None` if a run lacks the value.
fn compared(blocks: &[Block], of: impl Fn(&Run) -> Option<f64>) -> Option<(Comparison, NoiseBand)> {
    let pairs = |first: fn(&Block) -> &Run, second: fn(&Block) -> &Run| {
        let pair = |block| {
            let (a, b) = (of(first(block))?, of(second(block))?);
            Some(dyno_stats::Block { a, b })
        };
        blocks.iter().map(pair).collect::<Option<Vec<_>>>()
    };
    // A value that one run lacks, or a zero that has no ratio, leaves the figure out. Dropping
    // single blocks instead would break the balance of their orders.
    let band = noise_band(&pairs(|block| &block.old, |block| &block.control)?).ok()?;
    let main = pairs(|block| &block.new, |block| &block.old)?;
    let seen = compare(&main, Better::Lower, Some(&band)).ok()?;
    Some((seen, band))
}

fn figure(
    blocks: &[Block],
    name: &'static str,
    unit: &'static str,
    of: impl Fn(&Run) -> Option<f64>,
) -> Option<Figure> {
    let (seen, band) = compared(blocks, &of)?;
    let middle = |run: fn(&Block) -> &Run| {
        let values: Option<Vec<f64>> = blocks.iter().map(|block| of(run(block))).collect();
        median(&values?).ok()
    };
    Some(Figure {
        name,
        unit,
        old: middle(|block| &block.old)?,
        new: middle(|block| &block.new)?,
        ratio: seen.ratio,
        low: seen.interval.low,
        high: seen.interval.high,
        noise: band.share(),
        smallest_effect: band.smallest_effect(),
        verdict: seen.verdict.as_str(),
        reason: seen.reason,
    })
}

fn answer(seen: &Comparison, band: &NoiseBand, max_slowdown: Option<f64>) -> (Answer, String) {
    let interval = |turned: bool| {
        if turned {
            format!(
                "{:.3} to {:.3}",
                1.0 / seen.interval.high,
                1.0 / seen.interval.low
            )
        } else {
            format!("{:.3} to {:.3}", seen.interval.low, seen.interval.high)
        }
    };
    let noise = format!("this machine's noise is {}", band.text());
    match seen.verdict {
        Verdict::Faster => {
            let text = format!(
                "NEW is {:.3} times as fast as OLD (95% interval {}); {noise}.",
                seen.ratio,
                interval(false)
            );
            (Answer::NotSlower, text)
        }
        Verdict::Slower => {
            // The ratio is old to new. In the sentence it is turned round, because "takes 1.2 times
            // as long" is how a slowdown is spoken of.
            let longer = 1.0 / seen.ratio;
            let text = format!(
                "NEW takes {longer:.3} times as long as OLD (95% interval {}); {noise}.",
                interval(true)
            );
            match max_slowdown {
                Some(accepted) if longer <= 1.0 + accepted => (
                    Answer::NotSlower,
                    format!("{text} {:.1}% is accepted.", accepted * 100.0),
                ),
                _ => (Answer::Slower, text),
            }
        }
        Verdict::NoDifference => {
            let effect = max_slowdown.filter(|share| *share > 0.0).unwrap_or(EFFECT);
            let text = format!("No difference is shown; {}", what_would_be(band, effect));
            (Answer::NotSlower, text)
        }
        Verdict::Unstable | Verdict::NotJudged => {
            let text = format!("{}: {}.", seen.verdict.as_str(), seen.reason);
            (Answer::NotEnoughEvidence, text)
        }
    }
}

/// Which difference would have been shown, and how many blocks `effect` takes if it would not.
fn what_would_be(band: &NoiseBand, effect: f64) -> String {
    let smallest = band.smallest_effect();
    let would = format!(
        "one of {:.1}% would have been, in four comparisons of five",
        smallest * 100.0
    );
    if smallest <= effect {
        return format!("{would}.");
    }
    let percent = effect * 100.0;
    let enough =
        // Errors shrink with the root of the number of blocks, so the first number that is enough
        // is the least.
        (band.n..=BLOCKS_MAX).find(|blocks| band.with_blocks(*blocks).smallest_effect() <= effect);
    match enough {
        Some(blocks) => format!("{would}. To show {percent:.0}% takes about {blocks} blocks."),
        None => format!(
            "{would}. This machine is too noisy to show {percent:.0}%: `dyno doctor` says why."
        ),
    }
}

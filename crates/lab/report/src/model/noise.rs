//! The machine's own noise, as page one states it.

use dyno_stats::{Block, NoiseBand, median, noise_band};
use serde::Serialize;

use super::report::Report;
use crate::units::{counted, share_text};

/// What the control arms of a run showed: by how much one program seems to differ from itself, and
/// how large a difference must be before this run would show it.
pub(crate) fn noise_line(report: &Report) -> String {
    let bands: Vec<NoiseBand> = report.cases.iter().filter_map(|case| case.band).collect();
    if bands.is_empty() {
        return "noise of this machine: not measured, because no control arm ran; so no difference \
                is judged"
            .to_owned();
    }
    let share = |of: fn(&NoiseBand) -> f64| ends_and_middle(bands.iter().map(of).collect());
    let [fewest, most] = [
        bands.iter().map(|band| band.n).min().unwrap_or(0),
        bands.iter().map(|band| band.n).max().unwrap_or(0),
    ];
    let blocks = if fewest == most {
        format!("n = {most}")
    } else {
        format!("n = {fewest} to {most}")
    };
    format!(
        "noise of this machine: dyno differs from itself by up to {} (control arms of {}, {blocks}); \
         four runs of five would show a difference of {}",
        share(NoiseBand::share),
        counted(bands.len() as u64, "case"),
        share(NoiseBand::smallest_effect),
    )
}

/// A run has a share for each case. The ends and the middle are printed, because one number would
/// hide a noisy case among quiet ones.
fn ends_and_middle(mut shares: Vec<f64>) -> String {
    shares.sort_unstable_by(f64::total_cmp);
    let ends = [shares.first(), shares.last()].map(|end| share_text(end.copied().unwrap_or(0.0)));
    let [low, high] = ends;
    if low == high {
        return low;
    }
    // Two cases have no middle besides their ends.
    match median(&shares) {
        Ok(middle) if shares.len() > 2 => {
            format!("{low} to {high}, in the middle {}", share_text(middle))
        }
        _ => format!("{low} to {high}"),
    }
}

/// What a program timed against itself says of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Noise {
    /// The noise band as a share: 0.02 is ±2%.
    pub band: f64,
    /// Pairs of runs behind the band.
    pub blocks: usize,
    /// The smallest difference that so many blocks would show in about four runs of five.
    pub smallest_effects: Vec<(usize, f64)>,
}

impl Noise {
    /// Makes it from the times of two arms of one program in blocks; `None` without blocks, or when
    /// a time is not above zero.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Option<Noise> {
        let blocks: Vec<Block> = pairs.iter().map(|&(a, b)| Block { a, b }).collect();
        let band = noise_band(&blocks).ok()?;
        let effect = |n| (n, band.with_blocks(n).smallest_effect());
        Some(Noise {
            band: band.share(),
            blocks: band.n,
            smallest_effects: [5, 8, 10, 20].map(effect).to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_cases_or_more_have_a_middle() {
        assert_eq!(ends_and_middle(vec![0.05, 0.05]), "5.0%");
        assert_eq!(ends_and_middle(vec![0.08, 0.05]), "5.0% to 8.0%");
        assert_eq!(
            ends_and_middle(vec![0.05, 0.08, 0.06, 0.07]),
            "5.0% to 8.0%, in the middle 6.5%"
        );
    }
}

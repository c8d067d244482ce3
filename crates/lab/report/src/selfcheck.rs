//! How good the linter and the verdicts are, measured on input whose truth is known: faults planted
//! in figures, figures that look odd and are right, and simulated runs of equal programs.

use std::path::Path;

use dyno_record::parse_figures;
use dyno_stats::{Noise, VerdictScore, verdict_score};
use serde::Serialize;

use crate::lint::{Finding, Severity, lint};
use crate::units::{counted, share_text};

include!(concat!(env!("OUT_DIR"), "/corpus.rs"));

/// The share of planted faults that the linter has to find.
const FOUND_MIN: f64 = 0.90;
/// How often at most a verdict names a winner of two equal programs.
const ALARMS_MAX: f64 = 0.05;
/// How many of the 95% intervals hold the truth, over all kinds of noise.
const COVERAGE: std::ops::RangeInclusive<f64> = 0.93..=0.97;
/// How often at least the stated smallest effect is seen; it is meant to be four times in five.
const POWER_MIN: f64 = 0.70;

/// What one file of the corpus came to, where it is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// Name of the file, without its extension.
    pub file: String,
    /// The rule that had to find something, or `no error`.
    pub expected: String,
    /// The rules that found something, or why the file could not be read.
    pub found: String,
}

/// The score of the linter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LintScore {
    /// Files with one planted fault each.
    pub planted: usize,
    /// Those whose rule did not find it.
    pub missed: Vec<Missed>,
    /// Files that look odd and are right.
    pub sound: usize,
    /// Those that were called an error.
    pub flagged: Vec<Missed>,
}

/// The score of the verdicts for one kind of noise and number of blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictRow {
    /// The kind of noise in words.
    pub noise: &'static str,
    /// Blocks of a simulated run.
    pub blocks: usize,
    /// Number of simulated runs.
    pub trials: usize,
    /// Share of equal programs of which one was called better.
    pub false_alarms: f64,
    /// Share of 95% intervals that hold the truth.
    pub coverage: f64,
    /// Half of the runs state a smaller smallest effect: 0.05 is 5%.
    pub smallest_effect: f64,
    /// Share of programs better by that effect that were called better.
    pub power: f64,
}

/// The scores of the linter and of the verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selfcheck {
    /// How many planted faults the linter found.
    pub lint: LintScore,
    /// One row for each kind of noise and number of blocks.
    pub verdicts: Vec<VerdictRow>,
    /// Goals that are not reached; empty when all are.
    pub below: Vec<String>,
}

/// Blocks of the runs that are simulated: those that suites have.
const BLOCKS: [usize; 4] = [5, 6, 8, 10];

/// Measures the linter on the whole corpus, and the verdicts on 2,000 simulated runs for each kind
/// of noise and number of blocks, or, in `full`, on 20,000.
pub fn selfcheck(full: bool) -> Selfcheck {
    let trials = if full { 20_000 } else { 2_000 };
    let kinds = Noise::ALL.into_iter();
    let cells = kinds.flat_map(|noise| BLOCKS.map(|blocks| (noise, blocks)));
    let verdicts = cells.map(|(noise, blocks)| row(noise, blocks, trials));
    let mut checked = Selfcheck {
        lint: lint_score(),
        verdicts: verdicts.collect(),
        below: Vec::new(),
    };
    checked.below = checked.goals_missed();
    checked
}

/// Lints every file of the corpus.
pub fn lint_score() -> LintScore {
    let missed = PLANTED.iter().filter_map(|(name, text)| {
        let first = text.lines().next().unwrap_or_default();
        let rule = first.strip_prefix("# expect: ").unwrap_or_default();
        let found = findings(name, text);
        // Only the rule that the file names counts. Another rule that stumbles over the same file
        // would hide that the right one is blind.
        let hit = found.iter().flatten().any(|finding| finding.rule == rule);
        (!hit).then(|| describe_miss(name, rule, &found))
    });
    let flagged = SOUND.iter().filter_map(|(name, text)| {
        let found = findings(name, text);
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        // A file that cannot be read counts as flagged, or a typing error in the corpus would raise
        // the score.
        let wrong = found.as_ref().map_or(true, |all| all.iter().any(is_error));
        wrong.then(|| describe_miss(name, "no error", &found))
    });
    LintScore {
        planted: PLANTED.len(),
        missed: missed.collect(),
        sound: SOUND.len(),
        flagged: flagged.collect(),
    }
}

/// The findings of a file, or why it could not be read.
fn findings(name: &str, text: &str) -> Result<Vec<Finding>, String> {
    let figures = parse_figures(Path::new(name), text).map_err(|error| error.to_string())?;
    Ok(lint(&figures))
}

fn describe_miss(file: &str, expected: &str, found: &Result<Vec<Finding>, String>) -> Missed {
    let found = match found {
        Ok(findings) if findings.is_empty() => "nothing".to_owned(),
        Ok(findings) => {
            let rules: Vec<&str> = findings.iter().map(|finding| finding.rule).collect();
            rules.join(", ")
        }
        Err(reason) => reason.clone(),
    };
    Missed {
        file: file.to_owned(),
        expected: expected.to_owned(),
        found,
    }
}

fn row(noise: Noise, blocks: usize, trials: usize) -> VerdictRow {
    let VerdictScore {
        false_alarms,
        coverage,
        smallest_effect,
        power,
    } = verdict_score(noise, blocks, trials, 2026);
    VerdictRow {
        noise: noise.name(),
        blocks,
        trials,
        false_alarms,
        coverage,
        smallest_effect,
        power,
    }
}

impl LintScore {
    /// Planted faults that were found.
    pub fn found(&self) -> usize {
        self.planted - self.missed.len()
    }
}

impl Selfcheck {
    /// The share of all intervals that hold the truth.
    fn coverage(&self) -> f64 {
        let trials: usize = self.verdicts.iter().map(|row| row.trials).sum();
        let covered = self
            .verdicts
            .iter()
            .map(|row| row.coverage * row.trials as f64);
        covered.sum::<f64>() / trials as f64
    }

    fn goals_missed(&self) -> Vec<String> {
        let mut below = Vec::new();
        let lint = &self.lint;
        if (lint.found() as f64) < FOUND_MIN * lint.planted as f64 {
            let goal = share_text(FOUND_MIN);
            below.push(format!(
                "{} of {} planted faults found, and {goal} are the goal",
                lint.found(),
                lint.planted
            ));
        }
        if !lint.flagged.is_empty() {
            let files = counted(lint.flagged.len() as u64, "sound file");
            below.push(format!("{files} called an error, and none is the goal"));
        }
        for row in &self.verdicts {
            let place = format!("{}, {} blocks", row.noise, row.blocks);
            if row.false_alarms > ALARMS_MAX {
                let alarms = share_text(row.false_alarms);
                below.push(format!(
                    "{place}: {alarms} false alarms, and at most 5% are the goal"
                ));
            }
            if row.power < POWER_MIN {
                let power = share_text(row.power);
                below.push(format!(
                    "{place}: the smallest effect is seen in {power}, and 70% are the goal"
                ));
            }
        }
        let coverage = self.coverage();
        if !COVERAGE.contains(&coverage) {
            let seen = share_text(coverage);
            below.push(format!(
                "{seen} of the intervals hold the truth, and 93% to 97% are the goal"
            ));
        }
        below
    }

    /// The scores as text, the goals that were not reached last.
    pub fn to_lines(&self) -> Vec<String> {
        let LintScore {
            planted,
            sound,
            missed,
            flagged,
        } = &self.lint;
        let mut lines = vec![format!(
            "linter: {} of {planted} planted faults found, {} of {sound} sound files called an error",
            self.lint.found(),
            flagged.len()
        )];
        for one in missed.iter().chain(flagged) {
            let Missed {
                file,
                expected,
                found,
            } = one;
            lines.push(format!("  {file}: expected {expected}, found {found}"));
        }
        lines.push(format!(
            "verdicts: {} of the 95% intervals hold the truth, over all rows",
            share_text(self.coverage())
        ));
        let line = |cells: [String; 5]| {
            let [noise, blocks, alarms, covered, power] = cells;
            format!("  {noise:<30} {blocks:>6} {alarms:>12} {covered:>8}   {power}")
        };
        lines.push(line(
            ["noise", "blocks", "false alarms", "coverage", "power"].map(str::to_owned),
        ));
        lines.extend(self.verdicts.iter().map(|row| {
            line([
                row.noise.to_owned(),
                row.blocks.to_string(),
                share_text(row.false_alarms),
                share_text(row.coverage),
                format!(
                    "{} at {}",
                    share_text(row.power),
                    share_text(row.smallest_effect)
                ),
            ])
        }));
        match self.below.as_slice() {
            [] => lines.push("every goal is reached".to_owned()),
            below => lines.extend(below.iter().map(|goal| format!("below the goal: {goal}"))),
        }
        lines
    }
}

//! Prints a comparison as Markdown and as lines for a script.

use std::fmt::Write;

use super::change::SAME_PROGRAM;
use super::{Answer, Change, Comparison};
use crate::render::markdown_cell;
use crate::units::{quantity, ratio_range, ratio_text};

impl Comparison {
    /// A table that reads well on a terminal and renders as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "# {}: {} then {}\n\n",
            markdown_cell(&self.suite),
            markdown_cell(&self.base_started_at),
            markdown_cell(&self.new_started_at.join(" and "))
        );
        for mark in &self.marks {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- **not the same**: {}", markdown_cell(mark));
        }
        if !self.marks.is_empty() {
            text.push('\n');
        }
        if let Some(hash) = &self.same_program {
            let _ = writeln!(
                text,
                "All runs are of the same program ({hash}): what differs below is noise.\n"
            );
        }
        text.push_str("| case | system | before | after | ratio | interval | n | verdict |\n");
        text.push_str("|---|---|--:|--:|--:|--:|--:|---|\n");
        for change in &self.changes {
            text.push_str(&row(change));
        }
        for left in self.left_out_by_reason() {
            let _ = write!(text, "\nLeft out: {}\n", markdown_cell(&left));
        }
        let _ = write!(text, "\n{}\n", self.sentence());
        text
    }

    /// The answer, then what makes the runs incomparable, then the figures that stand in the way of
    /// a yes, then what has no figure to compare: for scripts and their logs.
    pub fn to_lines(&self) -> Vec<String> {
        let ours = |c: &&Change| c.system == crate::model::OURS;
        let open = self
            .changes
            .iter()
            .filter(ours)
            .filter(|c| c.answer != Answer::NoRegression);
        let figures = open.map(|change| {
            format!(
                "{}: {} then {}, {} ({}), {}: {}",
                change.case,
                quantity(change.base, &change.unit),
                quantity(change.new, &change.unit),
                ratio_text(change.ratio),
                ratio_range(change.low, change.high),
                change.verdict,
                change.reason
            )
        });
        std::iter::once(self.sentence())
            .chain(
                self.marks
                    .iter()
                    .map(|mark| format!("not the same: {mark}")),
            )
            .chain(figures)
            .chain(
                self.left_out_by_reason()
                    .iter()
                    .map(|left| format!("left out: {left}")),
            )
            .collect()
    }

    /// What is left out, with all that share a reason in one line: a run of some of the cases
    /// leaves out many.
    fn left_out_by_reason(&self) -> Vec<String> {
        let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
        for left in &self.left_out {
            match by_reason
                .iter_mut()
                .find(|(known, _)| *known == left.reason)
            {
                Some((_, names)) => names.push(left.subject()),
                None => by_reason.push((&left.reason, vec![left.subject()])),
            }
        }
        let line =
            |(reason, names): &(&str, Vec<String>)| format!("{}: {reason}", names.join(", "));
        by_reason.iter().map(line).collect()
    }

    /// The largest ratio, turned to be above 1, of what is the same program in all runs.
    fn drift(&self) -> f64 {
        let same = self.changes.iter().filter(|c| c.verdict == SAME_PROGRAM);
        same.map(|c| c.ratio.max(1.0 / c.ratio)).fold(1.0, f64::max)
    }

    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        let ours = |c: &&Change| c.system == crate::model::OURS;
        let counted = self.changes.iter().filter(ours).count();
        let worse: Vec<&str> = self
            .changes
            .iter()
            .filter(ours)
            .filter(|c| c.answer == self.answer)
            .map(|c| c.case.as_str())
            .collect();
        match self.answer {
            Answer::NoRegression if self.same_program.is_some() => format!(
                "Same program, no difference in {counted} figures; what did not change differed by \
                 up to {} between the runs.",
                ratio_text(self.drift())
            ),
            Answer::NoRegression => format!("No regression is shown in {counted} figures."),
            Answer::Regression => format!("Slower: {}.", worse.join(", ")),
            Answer::NotEnoughEvidence => {
                let mut reasons = Vec::new();
                if !worse.is_empty() {
                    reasons.push(worse.join(", "));
                }
                if !self.lost.is_empty() {
                    let lost = self.lost.join(", ");
                    reasons.push(format!("left out, without a figure of ours: {lost}"));
                }
                if reasons.is_empty() {
                    reasons.push("the runs are not comparable".to_owned());
                }
                format!("Not enough evidence: {}.", reasons.join("; "))
            }
        }
    }
}

fn row(change: &Change) -> String {
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} ({}) |\n",
        markdown_cell(&change.case),
        markdown_cell(&change.system),
        markdown_cell(&quantity(change.base, &change.unit)),
        markdown_cell(&quantity(change.new, &change.unit)),
        ratio_text(change.ratio),
        ratio_range(change.low, change.high),
        change.n,
        change.verdict,
        change.reason
    )
}

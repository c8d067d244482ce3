//! The few lines that a reader wants first: one per case, ours.

use serde::Serialize;

use crate::lint::Severity;
use crate::model::{
    CaseReport, NOT_JUDGED, NOT_STEADY, OURS, Report, Steady, deciding_ratio, spread_text,
};
use crate::units::{counted, quantity, ratio_text, share_text};

/// What the end of a run prints, and what stands first in the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Headline {
    /// Column heads of [`HeadlineRow::cells`].
    pub columns: [&'static str; 6],
    /// One per case.
    pub rows: Vec<HeadlineRow>,
    /// Lines below the table: failures, findings by weight, warnings about the record.
    pub notes: Vec<String>,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadlineRow {
    /// Case, figure, spread, share of the limit, ratio to the best peer, verdict.
    pub cells: [String; 6],
    /// Whether the row needs a loud mark: one sample, or none, or failures.
    pub loud: bool,
}

impl Headline {
    /// The rows with columns aligned, for a terminal without a table widget.
    pub fn to_lines(&self) -> Vec<String> {
        let width = |column: usize| {
            let cells = self
                .rows
                .iter()
                .map(|row| row.cells[column].chars().count());
            cells
                .chain([self.columns[column].chars().count()])
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cells: &[&str]| {
            let padded = cells
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = vec![line(&self.columns)];
        lines.extend(
            self.rows
                .iter()
                .map(|row| line(&row.cells.each_ref().map(|c| &**c))),
        );
        lines.extend(self.notes.iter().cloned());
        lines
    }
}

/// The headline of a report.
pub fn headline(report: &Report) -> Headline {
    let mut notes = Vec::new();
    if let Some(why) = report.run.program.untraceable() {
        notes.push(format!("not to be published: {why}"));
    }
    if !report.troubles.is_empty() {
        let plural = if report.troubles.len() == 1 { "" } else { "s" };
        notes.push(format!(
            "{} invocation{plural} failed or hung, and are in no figure",
            report.troubles.len()
        ));
    }
    let missing = report.run.systems.iter().filter_map(|system| {
        let reason = system.missing.as_ref()?;
        Some(format!("{} took no part: {reason}", system.name))
    });
    notes.extend(missing);
    notes.extend(findings_line(report));
    notes.extend(report.warnings.iter().map(|w| format!("warning: {w}")));
    Headline {
        columns: ["case", "dyno", "spread", "of limit", "best peer", "verdict"],
        rows: report.cases.iter().map(|case| row(report, case)).collect(),
        notes,
    }
}

fn row(report: &Report, case: &CaseReport) -> HeadlineRow {
    let plan = &case.plan;
    let Some(figure) = report.figure(&plan.name, OURS, &plan.metric) else {
        let why = match report.trouble_count(&plan.name, OURS) {
            0 => "not run".to_owned(),
            times => format!("failed {}", counted(times as u64, "time")),
        };
        let none = String::new;
        return HeadlineRow {
            cells: [plan.name.clone(), why, none(), none(), none(), none()],
            loud: true,
        };
    };
    let share = figure.share_of_limit.map(share_text).unwrap_or_default();
    let (ratio, verdict) = match deciding_ratio(report, &plan.name, OURS) {
        // Why nothing is concluded belongs to the line: a reader must not take it for a tie.
        Some((peer, ratio)) if [NOT_JUDGED, NOT_STEADY].contains(&ratio.verdict) => (
            format!("{} {peer}", ratio_text(ratio.ratio)),
            format!("{}: {}", ratio.verdict, ratio.reason),
        ),
        Some((peer, ratio)) => (
            format!("{} {peer}", ratio_text(ratio.ratio)),
            ratio.verdict.to_owned(),
        ),
        None => (String::new(), String::new()),
    };
    let troubles = report.trouble_count(&plan.name, OURS);
    let spread = match troubles {
        0 => spread_text(figure),
        _ => format!("{}, {troubles} failed", spread_text(figure)),
    };
    let unsteady = figure.steady.as_ref().filter(|steady| !steady.is_steady());
    HeadlineRow {
        cells: [
            plan.name.clone(),
            quantity(figure.median, &figure.unit),
            spread,
            share,
            ratio,
            unsteady.map_or(verdict, Steady::text),
        ],
        loud: figure.n == 1 || troubles > 0 || unsteady.is_some(),
    }
}

fn findings_line(report: &Report) -> Option<String> {
    let count = |severity| {
        let same = report.findings.iter().filter(|f| f.severity == severity);
        match same.count() {
            0 => None,
            1 => Some(format!("1 {}", severity.as_str())),
            many => Some(format!("{many} {}s", severity.as_str())),
        }
    };
    let weights = [Severity::Error, Severity::Warning, Severity::Note];
    let parts: Vec<String> = weights.into_iter().filter_map(count).collect();
    (!parts.is_empty()).then(|| format!("findings: {}", parts.join(", ")))
}

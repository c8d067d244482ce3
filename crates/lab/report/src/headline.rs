//! Page one of a report: what came out of each case, and what to choose.

use std::collections::BTreeMap;

use dyno_record::CasePlan;
use serde::Serialize;

use crate::lint::Severity;
use crate::model::{
    CaseReport, Figure, OURS, Report, Steady, choice, deciding_ratio, error_of, noise_line,
    spread_text, targets_summary,
};
use crate::units::{counted, quantity, ratio_range, ratio_text, share_text, verdict_word};

/// Stands in a cell that has nothing to say.
pub const NOTHING: &str = "–";

/// What the end of a run prints, and what stands first in the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Headline {
    /// The result in one or two sentences.
    pub summary: String,
    /// Column heads, in the order of [`HeadlineRow::cells`].
    pub columns: [&'static str; 7],
    /// One for each case that was run, those with a peer first.
    pub rows: Vec<HeadlineRow>,
    /// Lines below the table: failures, findings by weight, warnings about the record.
    pub notes: Vec<String>,
}

/// One case of page one, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadlineRow {
    /// The case, figure with spread, best peer with its figure, ratio with its interval, share of
    /// the limit, verdict, and what to choose.
    pub cells: [String; 7],
    /// The peer that the ratio is to.
    pub best_peer: Option<String>,
    /// Whether a peer that promises as much was to run in this case.
    pub compared: bool,
    /// Whether the figure needs a loud mark: one sample, or none, or failures.
    pub loud: bool,
}

impl Headline {
    /// The summary, the table and the notes, for a program, or a terminal as wide as the table.
    pub fn to_lines(&self) -> Vec<String> {
        let mut lines = vec![self.summary.clone(), String::new()];
        lines.extend(self.table());
        lines.extend(self.notes.iter().cloned());
        lines
    }

    /// The names of the columns and the rows, with columns aligned.
    pub fn table(&self) -> Vec<String> {
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
        let rows = self.rows.iter();
        let rows = rows.map(|row| line(&row.cells.each_ref().map(|cell| &**cell)));
        std::iter::once(line(&self.columns)).chain(rows).collect()
    }
}

/// The headline of a report.
pub fn headline(report: &Report) -> Headline {
    let was_run = |case: &&CaseReport| {
        let plan = &case.plan;
        report.figure(&plan.name, OURS, &plan.metric).is_some()
            || report.trouble_count(&plan.name, OURS) > 0
    };
    let rows = report.cases.iter().filter(was_run);
    let mut rows: Vec<HeadlineRow> = rows.map(|case| row(report, &case.plan)).collect();
    // The sort is stable, so that both halves keep the order of the plan.
    rows.sort_by_key(|row| !row.compared);
    Headline {
        summary: summary(report),
        columns: [
            "case",
            "dyno",
            "best peer",
            "ratio",
            "of limit",
            "verdict",
            "choose",
        ],
        rows,
        notes: notes(report, was_run),
    }
}

fn row(report: &Report, plan: &CasePlan) -> HeadlineRow {
    let compared = plan.rivals().next().is_some();
    let nothing = || NOTHING.to_owned();
    let troubles = report.trouble_count(&plan.name, OURS);
    // A case of which every invocation failed keeps its row: leaving it out would make the page
    // look better than the run was.
    let Some(figure) = report.figure(&plan.name, OURS, &plan.metric) else {
        let failed = format!("failed {}", counted(troubles as u64, "time"));
        return HeadlineRow {
            cells: [
                plan.name.clone(),
                failed,
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                "nothing: dyno did not end well".to_owned(),
            ],
            best_peer: None,
            compared,
            loud: true,
        };
    };
    let decided = deciding_ratio(report, &plan.name, OURS);
    let doubted = is_doubted(report, &plan.name, OURS);
    let unsteady = figure.unsteady();
    let verdict = match (&decided, unsteady) {
        (Some((_, ratio)), _) => {
            verdict_word(ratio.verdict, &figure.unit, &figure.metric).to_owned()
        }
        (None, Some(steady)) => steady.verdict.to_owned(),
        (None, None) => nothing(),
    };
    HeadlineRow {
        cells: [
            plan.name.clone(),
            if doubted {
                format!("{} (see findings)", ours_text(figure, troubles))
            } else {
                ours_text(figure, troubles)
            },
            peer_text(report, plan, decided.map(|(peer, _)| peer)),
            decided.map_or_else(nothing, |(_, ratio)| {
                let range = ratio_range(ratio.low, ratio.high);
                format!("{} ({range})", ratio_text(ratio.ratio))
            }),
            share_and_limit(figure, plan).unwrap_or_else(nothing),
            verdict,
            // Without a peer nothing is chosen, but a rate that is not steady still has to be said
            // where a reader looks for advice.
            choice(report, plan)
                .or(unsteady.map(|steady| format!("nothing yet: {}", steady.reason)))
                .unwrap_or_else(nothing),
        ],
        best_peer: decided.map(|(peer, _)| peer.to_owned()),
        compared,
        loud: figure.n == 1 || troubles > 0 || unsteady.is_some() || doubted,
    }
}

/// Whether the linter calls the figure of a system in a case an error: it must not be quoted
/// without that.
fn is_doubted(report: &Report, case: &str, system: &str) -> bool {
    error_of(&report.findings, case, system).is_some()
}

/// A share says little without what it is a share of.
fn share_and_limit(figure: &Figure, plan: &CasePlan) -> Option<String> {
    let share = share_text(figure.share_of_limit?);
    Some(match &plan.limit {
        Some(limit) => format!("{share} of {limit}"),
        None => share,
    })
}

fn ours_text(figure: &Figure, troubles: usize) -> String {
    let (median, spread) = (quantity(figure.median, &figure.unit), spread_text(figure));
    let mark = mark(figure);
    match troubles {
        0 => format!("{median} {spread}{mark}"),
        _ => format!("{median} {spread}, {troubles} failed{mark}"),
    }
}

/// What is said behind a rate that is not steady, or was not judged.
fn mark(figure: &Figure) -> String {
    let marked = |steady: &Steady| format!(" ({})", steady.verdict);
    figure.unsteady().map_or_else(String::new, marked)
}

/// The peer with its figure, or why there is no peer.
fn peer_text(report: &Report, plan: &CasePlan, best: Option<&str>) -> String {
    if let Some(peer) = best {
        let figure = report.figure(&plan.name, peer, &plan.metric);
        let text = figure.map(|figure| quantity(figure.median, &figure.unit) + &mark(figure));
        let doubt = if is_doubted(report, &plan.name, peer) {
            " (see findings)"
        } else {
            ""
        };
        return format!("{peer} {}{doubt}", text.unwrap_or_default());
    }
    let missing: Vec<String> = plan
        .rivals()
        .map(|peer| match report.trouble_count(&plan.name, peer) {
            0 => format!("{peer} was not measured"),
            times => format!("{peer} failed {}", counted(times as u64, "time")),
        })
        .collect();
    match missing.as_slice() {
        [] => "none".to_owned(),
        missing => format!("none: {}", missing.join(", ")),
    }
}

/// How often each verdict was reached against the best peer, with the ratios of the winners.
fn summary(report: &Report) -> String {
    let ours = |case: &CaseReport| {
        let plan = &case.plan;
        report.figure(&plan.name, OURS, &plan.metric).is_some()
    };
    let decided: Vec<_> = report
        .cases
        .iter()
        .filter_map(|case| deciding_ratio(report, &case.plan.name, OURS))
        .collect();
    // A ratio exists only where our figure does, so the subtraction cannot go below zero.
    let alone = report.cases.iter().filter(|case| ours(case)).count() - decided.len();
    let of_verdict = |verdict: &str| {
        let same = decided.iter().filter(|(_, r)| r.verdict == verdict);
        let mut ratios: Vec<f64> = same.map(|(_, ratio)| ratio.ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let won = |verdict: &str| {
        let ratios = of_verdict(verdict);
        let range = match (ratios.first(), ratios.last()) {
            (Some(low), Some(high)) if ratios.len() > 1 => {
                format!(" ({} to {})", ratio_text(*low), ratio_text(*high))
            }
            (Some(only), _) => format!(" ({})", ratio_text(*only)),
            _ => String::new(),
        };
        match ratios.len() {
            0 => format!("{verdict} in none"),
            many => format!("{verdict} in {many}{range}"),
        }
    };
    let mut text = match decided.len() {
        0 => "No peer was measured beside dyno, so nothing is compared.".to_owned(),
        many => {
            // Verdicts that decide nothing are counted beside the others. If only wins and losses
            // were named, their sum would silently fall short of the number of cases.
            let open: Vec<String> = [
                "no difference shown",
                "unstable",
                "not steady",
                "not judged",
            ]
            .into_iter()
            .map(|verdict| (verdict, of_verdict(verdict).len()))
            .filter(|(_, count)| *count > 0)
            .map(|(verdict, count)| format!(", {verdict} in {count}"))
            .collect();
            let cases = match many {
                1 => "1 case".to_owned(),
                many => format!("each of {many} cases"),
            };
            format!(
                "Against the best peer in {cases}, dyno is {}, {}{}.",
                won("faster"),
                won("slower"),
                open.concat()
            )
        }
    };
    if alone > 0 {
        let cases = counted(alone as u64, "case");
        text.push_str(&format!(" Without a peer: {cases}."));
    }
    text.push_str(&largest_share(report).unwrap_or_default());
    text.push_str(&targets_summary(report).unwrap_or_default());
    text
}

fn largest_share(report: &Report) -> Option<String> {
    let ours = report.figures.iter().filter(|figure| figure.system == OURS);
    let (share, case) = ours
        .filter_map(|figure| Some((figure.share_of_limit?, &figure.case)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let share = share_text(share);
    Some(format!(
        " The largest share of a measured limit is {share}, in {case}."
    ))
}

fn notes(report: &Report, was_run: impl Fn(&&CaseReport) -> bool) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = report.run.program.untraceable() {
        notes.push(format!("not to be published: {why}"));
    }
    notes.push(noise_line(report));
    for case in &report.cases {
        let name = &case.plan.name;
        let cause = case
            .cause
            .as_ref()
            .map(|cause| format!("what bounds {name}: {}", cause.text));
        let target = case
            .target
            .as_ref()
            .map(|target| format!("target of {name}: {}", target.text()));
        notes.extend(cause.into_iter().chain(target));
    }
    let less = report
        .cases
        .iter()
        .flat_map(|case| &case.plan.promises_less);
    for (peer, what) in less.collect::<BTreeMap<_, _>>() {
        notes.push(format!(
            "{peer} promises less, so it is not the best peer: {what}"
        ));
    }
    let left_out = report.cases.iter().filter(|case| !was_run(case));
    let left_out: Vec<&str> = left_out.map(|case| case.plan.name.as_str()).collect();
    if !left_out.is_empty() {
        let cases = counted(left_out.len() as u64, "case");
        notes.push(format!("not run: {cases}: {}", left_out.join(", ")));
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
    notes
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

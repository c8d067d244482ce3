//! The report as the templates see it: text, ready to be escaped and set.

use dyno_record::{Limit, MachineCheck, OURS, TableKind};
use serde::Serialize;

use super::plots::{Plots, parameter, stage_of};
use super::raw::{RawRow, raw_row};
use crate::headline::{Headline, HeadlineRow, headline};
use crate::lint::{Finding, lint_scope};
use crate::model::{
    BESIDE_TITLE, CaseReport, Figure, FilledTable, Report, TARGETS_TITLE, WHY_TITLE, best_known,
    figures_of, is_interleaved, sensor_rows, spread_text,
};
use crate::units::{quantity, range_text, ratio_range, ratio_text, share_text, verdict_word};

/// Rows of the raw table, about 500 bytes each; the record has all.
const RAW_ROWS_MAX: usize = 600;

#[derive(Serialize)]
pub(super) struct View {
    title: String,
    suite: String,
    size: String,
    purpose: String,
    seed_document: String,
    started_at: String,
    ended: String,
    beside: String,
    environment: Vec<(String, String)>,
    checks: Vec<MachineCheck>,
    withdrawn: Option<WithdrawnView>,
    headline: Headline,
    rows: Vec<RowView>,
    has_alone: bool,
    findings: Vec<Finding>,
    /// How many rules were held against how much.
    linted: String,
    limits: Vec<LimitRow>,
    pub(super) tables: Vec<TableView>,
    sweeps: Vec<String>,
    cases: Vec<CaseView>,
    command: String,
    troubles: Vec<crate::model::Trouble>,
    raw: Vec<RawRow>,
    raw_left_out: usize,
}

/// What of a record is withdrawn, and why, as Markdown.
#[derive(Serialize)]
pub(crate) struct WithdrawnView {
    what: String,
    /// The first paragraph of the reasons.
    first: String,
    rest: String,
}

impl WithdrawnView {
    pub(crate) fn from_report(report: &Report) -> Option<WithdrawnView> {
        let withdrawal = report.withdrawn.as_ref()?;
        let why = withdrawal.why.as_str();
        let (first, rest) = why.split_once("\n\n").unwrap_or((why, ""));
        Some(WithdrawnView {
            what: withdrawal.what.clone(),
            first: first.to_owned(),
            rest: rest.to_owned(),
        })
    }
}

/// A row of page one, with what a link to its case needs.
#[derive(Serialize)]
pub(crate) struct RowView {
    #[serde(flatten)]
    row: HeadlineRow,
    anchor: String,
    title: String,
    /// `good`, `bad` or nothing: a colour beside the words of the verdict.
    tone: &'static str,
}

/// A table of the plan, and whether it is one that says what to choose.
#[derive(Serialize)]
pub(super) struct TableView {
    #[serde(flatten)]
    table: FilledTable,
    pub(super) guide: bool,
}

impl TableView {
    pub(super) fn title(&self) -> &str {
        &self.table.title
    }

    /// Lines that it takes as Markdown: a heading, the heads, the rows, and its notes, each after
    /// an empty line.
    pub(super) fn markdown_lines(&self) -> usize {
        5 + self.table.rows.len() + 2 * self.table.notes.len()
    }
}

#[derive(Serialize)]
struct LimitRow {
    name: String,
    value: String,
    spread: String,
    method: String,
    independent: String,
}

#[derive(Serialize)]
struct CaseView {
    anchor: String,
    name: String,
    result: String,
    title: String,
    workload: String,
    params: String,
    analysis: String,
    limit: String,
    target: String,
    bounds: String,
    seed: String,
    band: String,
    has_latency: bool,
    has_time: bool,
    has_stages: bool,
    has_roofline: bool,
    flames: Vec<FlameView>,
    command: String,
    figures: Vec<FigureRow>,
}

/// A profile of a case; `index` is its place among those of the page's data.
#[derive(Serialize)]
struct FlameView {
    system: String,
    samples: u64,
    index: usize,
}

#[derive(Serialize)]
struct FigureRow {
    system: String,
    metric: String,
    median: String,
    range: String,
    spread: String,
    ratios: Vec<RatioText>,
    loud: bool,
}

#[derive(Serialize)]
struct RatioText {
    text: String,
    reason: String,
}

impl View {
    pub(super) fn from_report(report: &Report) -> View {
        let run = &report.run;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let headline = headline(report);
        let cases = report.cases.iter().enumerate();
        let cases = cases.map(|(index, case)| case_view(report, index, case, &headline.rows));
        View {
            title: run.plan.title.clone(),
            suite: run.plan.suite.clone(),
            size: format!("{:?}", run.plan.size).to_lowercase(),
            purpose: run.plan.purpose.clone(),
            seed_document: text(&run.plan.seed_document),
            started_at: run.started_at.clone(),
            ended: match &run.finished_at {
                Some(at) => format!("ended {at}"),
                None => "did not end: these are the samples so far".to_owned(),
            },
            beside: text(&run.beside),
            environment: environment(report),
            checks: bad_checks(report),
            withdrawn: WithdrawnView::from_report(report),
            has_alone: headline.rows.iter().any(|row| !row.compared),
            rows: rows(report, &headline),
            findings: report.findings.clone(),
            linted: lint_scope(&figures_of(report, &report.samples)),
            limits: run.limits.iter().map(limit_row).collect(),
            tables: tables(report),
            sweeps: Plots::from_report(report)
                .sweeps
                .into_iter()
                .map(|s| s.title)
                .collect(),
            cases: cases.collect(),
            headline,
            command: report.command(),
            troubles: report.troubles.clone(),
            raw: report
                .samples
                .iter()
                .take(RAW_ROWS_MAX)
                .map(raw_row)
                .collect(),
            raw_left_out: report.samples.len().saturating_sub(RAW_ROWS_MAX),
        }
    }
}

/// Page one with its links.
pub(crate) fn rows(report: &Report, headline: &Headline) -> Vec<RowView> {
    let row = |row: &HeadlineRow| {
        let mut cases = report.cases.iter().enumerate();
        let (index, case) = cases.find(|(_, case)| case.plan.name == row.cells[0])?;
        Some(RowView {
            row: row.clone(),
            anchor: anchor(index, &case.plan.name),
            title: case.plan.title.clone(),
            tone: match row.cells[5].as_str() {
                "faster" | "smaller" | "better" => "good",
                "slower" | "larger" | "worse" => "bad",
                _ => "",
            },
        })
    };
    headline.rows.iter().filter_map(row).collect()
}

/// The tables of a report in its order. Those of the plan come first, so the plan knows which of
/// them are guides; behind them stand the report's own, of variants and of what a load costs.
fn tables(report: &Report) -> Vec<TableView> {
    let plans = &report.run.plan.tables;
    let tables = report.tables.iter().enumerate();
    tables
        // A run of a part of the suite leaves tables without a row, which would say nothing.
        .filter(|(_, table)| !table.rows.is_empty() || !table.notes.is_empty())
        .map(|(index, table)| TableView {
            table: table.clone(),
            guide: match plans.get(index) {
                Some(plan) => plan.kind == TableKind::Guide,
                // What a run was made to learn stands on page one: what a load costs, which
                // targets are met, and what bounds a figure.
                None => [BESIDE_TITLE, TARGETS_TITLE, WHY_TITLE].contains(&table.title.as_str()),
            },
        })
        .collect()
}

/// The name under which a link finds a case: its own, so that links hold when cases are added. A
/// name that is not made for links is replaced by its place in the plan.
fn anchor(index: usize, name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        format!("case-{name}")
    } else {
        format!("case--{index}")
    }
}

/// Machine, then program, then the systems with their versions.
pub(super) fn environment(report: &Report) -> Vec<(String, String)> {
    let run = &report.run;
    let mut rows = run.machine.facts.clone();
    rows.push(("fingerprint".to_owned(), run.machine.fingerprint.clone()));
    let program = &run.program;
    rows.push((
        "program".to_owned(),
        format!(
            "dyno {}, {} build, revision {}, hash {}",
            program.version, program.profile, program.git_revision, program.hash
        ),
    ));
    rows.extend(run.systems.iter().map(|system| match &system.missing {
        None => (system.name.clone(), format!("version {}", system.version)),
        Some(reason) => (system.name.clone(), format!("took no part: {reason}")),
    }));
    rows.extend(sensor_rows(report));
    if let Some(text) = run.plan.left_out.text(run.plan.size) {
        rows.push(("not run".to_owned(), text));
    }
    if let Some(load) = &run.beside {
        let beside = if is_interleaved(&report.samples) {
            format!("{load}, beside a second invocation of each system in each block")
        } else {
            load.clone()
        };
        rows.push(("beside the run".to_owned(), beside));
    }
    rows
}

/// What `doctor` found good needs no place on page one.
fn bad_checks(report: &Report) -> Vec<MachineCheck> {
    let checks = report.run.machine.checks.iter();
    checks
        .filter(|check| check.state != "good")
        .cloned()
        .collect()
}

fn limit_row(limit: &Limit) -> LimitRow {
    LimitRow {
        name: limit.name.clone(),
        value: quantity(best_known(limit), &limit.unit),
        spread: format!(
            "{}, n = {}",
            range_text(limit.low, limit.high, &limit.unit),
            limit.n
        ),
        method: limit.method.clone(),
        independent: other_method(limit),
    }
}

fn other_method(limit: &Limit) -> String {
    let Some((name, other)) = &limit.independent else {
        return "no independent tool ran".to_owned();
    };
    let of_other = format!("{name} {}", quantity(*other, &limit.unit));
    // Older records have the tool's value twice where the tool did better, and ours not at all.
    if name == OURS || *other == limit.value {
        of_other
    } else {
        format!("ours {}, {of_other}", quantity(limit.value, &limit.unit))
    }
}

fn flame_views(report: &Report, index: usize, case: &CaseReport) -> Vec<FlameView> {
    let before = report.cases[..index].iter().map(|case| case.flames.len());
    let first: usize = before.sum();
    let numbered = case.flames.iter().zip(first..);
    let views = numbered.map(|(flame, index)| FlameView {
        system: flame.system.clone(),
        samples: flame.root.samples,
        index,
    });
    views.collect()
}

fn case_view(
    report: &Report,
    index: usize,
    case: &CaseReport,
    headline: &[HeadlineRow],
) -> CaseView {
    let plan = &case.plan;
    let figures = || report.figures.iter().filter(|f| f.case == plan.name);
    let limit = figures().find_map(|f| f.limit.map(|limit| (limit, &f.unit)));
    let params = plan.params.iter();
    let params = params.map(|(name, value)| without_references(&parameter(name, value)));
    // A case that was chosen and not reached has no row on page one.
    let row = headline.iter().find(|row| row.cells[0] == plan.name);
    CaseView {
        anchor: anchor(index, &plan.name),
        name: plan.name.clone(),
        result: row.map_or("not run".to_owned(), result),
        title: plan.title.clone(),
        workload: plan.workload.clone(),
        params: params.collect::<Vec<_>>().join(", "),
        analysis: plan.analysis.clone(),
        limit: match (&plan.limit, limit) {
            (Some(name), Some((limit, unit))) => format!("{name}: {}", quantity(limit, unit)),
            (Some(name), None) => format!("{name}: not available: it was not measured"),
            (None, _) => plan
                .no_limit
                .as_ref()
                .map_or(String::new(), |reason| format!("is not known: {reason}")),
        },
        target: case.target.as_ref().map_or(String::new(), |one| one.text()),
        bounds: case
            .cause
            .as_ref()
            .map_or(String::new(), |one| one.text.clone()),
        seed: match &plan.seed_figure {
            Some(seed) => format!("{} ({})", quantity(seed.value, &plan.unit), seed.note),
            None => String::new(),
        },
        band: match case.band {
            None => "not measured: no control arm ran".to_owned(),
            Some(band) => format!(
                "{}, from {} blocks of dyno against itself, so that a difference of {} is shown in \
                 about four runs of five",
                band.text(),
                band.n,
                share_text(band.smallest_effect())
            ),
        },
        command: report.case_command(plan),
        has_latency: figures().any(|f| f.metric.starts_with("latency-p"))
            || !case.latencies.is_empty(),
        has_time: !case.latencies.is_empty(),
        has_stages: figures().any(|f| stage_of(&f.metric).is_some()),
        has_roofline: case.roofline.is_some(),
        flames: flame_views(report, index, case),
        figures: figures().map(figure_row).collect(),
    }
}

/// References to data as a reader knows them: `files = archive/*.csv.gz`. A record keeps the
/// reference, because the directory behind it is of one machine.
fn without_references(text: &str) -> String {
    let mut parts = text.split("${data.");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(&part.replacen('}', "", 1));
    }
    out
}

/// A case in one line: our figure, and the ratio to the best peer with its verdict.
fn result(row: &HeadlineRow) -> String {
    let [_, ours, _, ratio, _, verdict, _] = &row.cells;
    match &row.best_peer {
        Some(peer) => format!("{ours} · {ratio} {peer} · {verdict}"),
        None => ours.clone(),
    }
}

fn figure_row(figure: &Figure) -> FigureRow {
    let unsteady = figure.unsteady();
    let mark = unsteady.map_or(String::new(), |steady| format!(" ({})", steady.text()));
    let median = quantity(figure.median, &figure.unit) + &mark;
    FigureRow {
        system: figure.system.clone(),
        metric: figure.metric.clone(),
        median: match figure.share_of_limit {
            Some(share) => format!("{median} ({} of limit)", share_text(share)),
            None => median,
        },
        range: match figure.low.zip(figure.high) {
            Some((low, high)) => range_text(low, high, &figure.unit),
            None => "n = 1".to_owned(),
        },
        spread: spread_text(figure),
        ratios: figure
            .ratio_to
            .iter()
            .map(|(peer, ratio)| RatioText {
                text: format!(
                    "{} {peer} ({}), {}",
                    ratio_text(ratio.ratio),
                    ratio_range(ratio.low, ratio.high),
                    verdict_word(ratio.verdict, &figure.unit, &figure.metric)
                ),
                reason: ratio.reason.clone(),
            })
            .collect(),
        loud: figure.n == 1 || unsteady.is_some(),
    }
}

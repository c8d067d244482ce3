//! The report as `report.json`, whose form `docs/formats/record.schema.json` states.

use dyno_record::{CasePlan, Limit, Machine, Program, SeedFigure, Size, SystemVersion, Withdrawal};
use serde::Serialize;

use crate::error::ReportError;
use crate::headline::{Headline, headline};
use crate::lint::Finding;
use crate::model::{Cause, Figure, FilledTable, Report, Series, TargetOutcome, Trouble};

/// The version of the form; fields are added without a new one, never changed.
const REPORT_VERSION: u32 = 3;

#[derive(Serialize)]
struct Document<'a> {
    magic: &'static str,
    version: u32,
    suite: &'a str,
    title: &'a str,
    size: Size,
    seed_document: &'a Option<String>,
    started_at: &'a str,
    finished_at: &'a Option<String>,
    beside: &'a Option<String>,
    commands: Vec<String>,
    machine: &'a Machine,
    program: &'a Program,
    systems: &'a [SystemVersion],
    limits: &'a [Limit],
    headline: Headline,
    figures: &'a [Figure],
    findings: &'a [Finding],
    tables: &'a [FilledTable],
    cases: Vec<Case<'a>>,
    failures: &'a [Trouble],
    warnings: &'a [String],
    withdrawn: &'a Option<Withdrawal>,
}

#[derive(Serialize)]
struct Case<'a> {
    name: &'a str,
    title: &'a str,
    plan: &'a CasePlan,
    noise_band: Option<f64>,
    noise_band_blocks: usize,
    smallest_effect: Option<f64>,
    seed_figure: &'a Option<SeedFigure>,
    cause: &'a Option<Cause>,
    target: &'a Option<TargetOutcome>,
    series: &'a [Series],
}

pub(super) fn print(report: &Report) -> Result<String, ReportError> {
    let run = &report.run;
    let document = Document {
        magic: "dyno-report",
        version: REPORT_VERSION,
        suite: &run.plan.suite,
        title: &run.plan.title,
        size: run.plan.size,
        seed_document: &run.plan.seed_document,
        started_at: &run.started_at,
        finished_at: &run.finished_at,
        beside: &run.beside,
        commands: vec![report.command()],
        machine: &run.machine,
        program: &run.program,
        systems: &run.systems,
        limits: &run.limits,
        headline: headline(report),
        figures: &report.figures,
        findings: &report.findings,
        tables: &report.tables,
        cases: report
            .cases
            .iter()
            .map(|case| Case {
                name: &case.plan.name,
                title: &case.plan.title,
                plan: &case.plan,
                noise_band: case.band.map(|band| band.share()),
                noise_band_blocks: case.band.map_or(0, |band| band.n),
                smallest_effect: case.band.map(|band| band.smallest_effect()),
                seed_figure: &case.plan.seed_figure,
                cause: &case.cause,
                target: &case.target,
                series: &case.series,
            })
            .collect(),
        failures: &report.troubles,
        warnings: &report.warnings,
        withdrawn: &report.withdrawn,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// JSON that may stand inside a `<script>` element: no character of it can end the element, open
/// a comment, or end a line where old scripts would see one.
pub(super) fn inline<T: Serialize>(value: &T) -> Result<String, ReportError> {
    let text = serde_json::to_string(value)?;
    Ok(text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

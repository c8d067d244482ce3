//! Figures, lint and reports made from a record.
//!
//! A report only reads: [`build`] turns a run and its samples into a [`Report`], which prints
//! itself as Markdown, as one offline HTML file, as a workbook and as JSON. [`lint`] holds the same
//! rules against our figures, those of another document ([`dyno_record::Figures`]) and the result
//! files of other tools ([`read_foreign`]). [`compare`] sets two runs side by side, [`write_site`]
//! makes pages of all records, and [`ClaimedRecords`] holds the figures of other documents against
//! their records. [`History`] has the same figure of many runs. Nothing here runs, measures or
//! guesses: what is missing is said to be missing.

mod claims;
mod compare;
mod error;
mod foreign;
mod headline;
mod history;
mod lint;
mod model;
mod rank;
mod render;
mod reproduction;
mod selfcheck;
mod site;
mod standing;
mod units;

/// A JSON Schema (2020-12) of `run.json`, of the lines of `samples.ndjson` and of `report.json`.
pub const JSON_SCHEMA: &str = include_str!("../../../../docs/formats/record.schema.json");

pub use claims::{BrokenClaim, CheckedClaim, ClaimedRecords, renewed};
pub use compare::{
    Answer, Change, CompareRules, Comparison, NotCompared, compare, nothing_to_compare,
};
pub use error::ReportError;
pub use foreign::{ForeignError, read_foreign};
pub use headline::{Headline, HeadlineRow, NOTHING, headline};
pub use history::{
    History, HistoryFilter, HistoryPoint, HistorySeries, OtavaTable, SeriesChange, history_line,
};
pub use lint::{Finding, Severity, lint, lint_markdown, lint_scope, lint_text};
pub use model::{
    Amount, CaseReport, Cause, Cell, Dot, Figure, FilledTable, KeptLatencies, LatencyAt, Noise,
    OURS, Ratio, Report, Roofline, RooflinePoint, Series, Steady, TargetOutcome, Trial, Trouble,
    build, build_stored, figures_of, shell_word,
};
pub use rank::{RankedCase, RankedRecord, RankedRow, Ranking, rank};
pub use reproduction::{Agreement, Claim, Reproduction, reproduce};
pub use selfcheck::{LintScore, Missed, Selfcheck, VerdictRow, lint_score, selfcheck};
pub use site::{Site, write_site};
pub use standing::Standing;
pub use units::{counted, number, quantity, ratio_text, share_text};

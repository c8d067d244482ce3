//! The types of `run.json` and `samples.ndjson`. Changing them means a new [`SCHEMA_VERSION`],
//! a migration and a fixture of the old form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::left_out::LeftOut;
use crate::sensed::Sensed;
use crate::target::Target;

/// The version that this program writes; a newer one is refused by name.
pub const SCHEMA_VERSION: u32 = 3;

/// One execution of a suite: what was planned, on what, with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Always `dyno-run`, so that a stray JSON file is not taken for a record.
    pub magic: String,
    /// Version of the form; see [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// UTC start, RFC 3339 with seconds.
    pub started_at: String,
    /// UTC end; absent while the run goes on and after a crash, which marks it incomplete.
    pub finished_at: Option<String>,
    /// What was going to be run, fixed before the first sample.
    pub plan: Plan,
    /// The machine it ran on.
    pub machine: Machine,
    /// What that machine can do, measured in this run or taken from a named earlier one.
    pub limits: Vec<Limit>,
    /// The program that ran it.
    pub program: Program,
    /// Every system of the plan with its version, `dyno` first.
    pub systems: Vec<SystemVersion>,
    /// The load (`--beside`) that ran beside the samples of the arm [`Arm::Beside`]; `null` when
    /// none did. A record whose samples have no such arm, of version 1 or 2, had it beside all of
    /// them.
    pub beside: Option<String>,
    /// The command line that ran it, where the suite is not one that `dyno run` knows by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Which sensors no sample has, with the reason: `clock`, `temperature`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unread: BTreeMap<String, String>,
}

/// How much of a suite was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Tiny inputs, in tests: proves that the suite runs, measures nothing.
    Tiny,
    /// Takes minutes, for a first answer.
    Quick,
    /// The figures that are published.
    Full,
}

/// The cells of a suite and how often each is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The suite's name: its file name without `.toml`.
    pub suite: String,
    /// A heading for the report.
    pub title: String,
    /// What the suite is meant to tell, in a few sentences (Markdown).
    pub purpose: String,
    /// The seed document whose tables this suite makes again, when there is one.
    pub seed_document: Option<String>,
    /// Which of the suite's sizes.
    pub size: Size,
    /// Seeds the order of invocations.
    pub order_seed: u64,
    /// The cases, in the order of the file.
    pub cases: Vec<CasePlan>,
    /// Parameters of the size that were set for this run, by name, as they were written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// The patterns that `cases` were chosen by; empty when all of the suite's cases were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// The patterns of cases that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<String>,
    /// What the size leaves out of the suite.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// Tables that the report prints, in order.
    pub tables: Vec<Table>,
}

/// One case: a workload with its parameters, run on one or more systems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CasePlan {
    /// Kebab-case and stable, for example `load-gz-2`.
    pub name: String,
    /// One line that says to people what it is.
    pub title: String,
    /// The rig's workload, for example `ingest-load`.
    pub workload: String,
    /// Whether the workload is a job that ends or a service under load.
    pub load: Load,
    /// What the workload is given; the same for every system.
    pub params: BTreeMap<String, serde_json::Value>,
    /// `dyno`, its variants and the peers taking part.
    pub systems: Vec<String>,
    /// Other ways of `dyno` to do the same work, by the name that stands for each among the
    /// systems, with the parameters in which it differs. They run in the same blocks and must give
    /// the same answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
    /// Peers that promise less than `dyno`, and how.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub promises_less: BTreeMap<String, String>,
    /// Those of the variants that are another project's library inside `dyno`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<String>,
    /// What `--why` changed, by the name of the system that ran with the change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub experiments: BTreeMap<String, Experiment>,
    /// Resources that `--why` could not change in this case, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub untried: BTreeMap<String, String>,
    /// The metric that ranks systems, for example `throughput`.
    pub metric: String,
    /// Its unit, for example `rows/s`.
    pub unit: String,
    /// The direction in which `metric` is better.
    pub better: Better,
    /// Invocations of each system, one in each block.
    pub repeats: u32,
    /// Whether a second, identical `dyno` arm runs too, for the noise band.
    pub control: bool,
    /// A child that runs longer is killed and reported as a hang.
    pub time_limit_s: f64,
    /// The number of units of work that every answer must report, when it is known beforehand.
    pub expected_count: Option<u64>,
    /// Names the limit that bounds the metric (see [`Limit::name`]).
    pub limit: Option<String>,
    /// Multiplies the limit's value into the metric's unit (bytes per row, for example, inverted).
    pub limit_per_unit: Option<f64>,
    /// Why no limit is known, where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_limit: Option<String>,
    /// What the figure is meant to reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// What the seed document printed for this case, on its machine.
    pub seed_figure: Option<SeedFigure>,
    /// What a reader may conclude from the case and what not (Markdown).
    pub analysis: String,
    /// For a case of a sweep: the axis value, so that the report can plot it (`rows` = 1e6).
    pub axis: Option<(String, f64)>,
    /// Number of requests in flight in a closed loop, for Little's law; absent otherwise.
    pub in_flight: Option<f64>,
    /// The offered rate of an open loop in units per second; absent otherwise.
    pub offered_rate: Option<f64>,
}

/// Seconds of measured time over which the rate of a service must be shown; below, nothing is
/// concluded from it.
pub const MEASURED_MIN_S: f64 = 20.0;

/// The value of a sample's fact `generator` where its load generator offered what it should; any
/// other says why it did not.
pub const KEPT_SCHEDULE: &str = "kept its schedule";

/// The share of the machine's time that a hypervisor may take away; more spoils a measurement.
pub const STEAL_MAX: f64 = 0.01;

/// What kind of work a case measures, which decides what its rate must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Work of a stated size that ends: a load of so many rows, files of a scale factor. Whether
    /// its rate is level is asked of a sweep over sizes.
    Job,
    /// Work that could go on for ever: transactions, messages, pages in and out. Its rate must be
    /// shown to be steady over time, from the windows of its samples.
    Service,
}

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better, as with rates.
    Higher,
    /// Less is better, as with times and bytes.
    Lower,
}

/// A figure printed in a seed document, in the metric's unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeedFigure {
    /// The number as printed there.
    pub value: f64,
    /// Where it came from: machine, scale, and what is known to be wrong with it.
    pub note: String,
}

/// A table of the report: rows are cases on systems, columns are named below.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Heading of the printed table.
    pub title: String,
    /// What a row of it is.
    #[serde(default, skip_serializing_if = "TableKind::is_cases")]
    pub kind: TableKind,
    /// Column names, out of: `system`, `throughput`, `time`, `cpu`, `peak-rss`, `share-of-limit`,
    /// `ratio`, `bottleneck`, `verdict`, `spread`, `variation`, `repeats`, `seed`, or any metric or
    /// fact of the samples. Of a table of metrics: the systems set side by side, the one that the
    /// others are compared with first.
    pub columns: Vec<String>,
    /// Rows; one without a system stands for every system of its case.
    pub rows: Vec<TableRow>,
    /// Whether rows are sorted, the best first: by the ranking metric, or by `ranked_by`.
    pub ranked: bool,
    /// The column that a ranked table is sorted by in place of the ranking metric: `variation`, the
    /// lowest first, or a metric of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranked_by: Option<String>,
}

/// A row of a [`Table`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// Text of the first cell.
    pub label: String,
    /// Name of the case shown.
    pub case: String,
    /// The system shown; all of the case's systems when absent.
    pub system: Option<String>,
    /// In a table of metrics, the metric shown; the ranking one when absent. In a table of cases,
    /// what stands before the names of the columns: `row-1` turns `spots` into `row-1-spots`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// In a table of metrics, what the seed document prints for each column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seed: Vec<f64>,
}

/// What the rows of a [`Table`] are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableKind {
    /// A case on a system.
    #[default]
    Cases,
    /// A metric of a case, the systems side by side, with the best speed-up and its verdict.
    Metrics,
    /// A case, with what to choose in it as far as verdicts carry.
    Guide,
}

impl TableKind {
    fn is_cases(&self) -> bool {
        *self == TableKind::Cases
    }
}

/// One invocation: one child process, start to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Name of the case, as the plan has it.
    pub case: String,
    /// `dyno` or a peer's name.
    pub system: String,
    /// Which arm of the block.
    pub arm: Arm,
    /// The randomised block this belongs to; one block holds one invocation of each system.
    pub block: u32,
    /// Position inside the block, from 0.
    pub position: u32,
    /// Seconds since the run started.
    pub at_s: f64,
    /// Whether it ended well, and why not.
    pub outcome: Outcome,
    /// Wall seconds of the child, start to exit.
    pub wall_s: f64,
    /// What the workload computed; compared before anything was timed, and again here.
    pub answer: Option<Answer>,
    /// Metric name to value: `throughput`, `latency-p50`, `time`...
    pub metrics: BTreeMap<String, f64>,
    /// Facts about this invocation for people: `bottleneck`, `detail`...
    pub facts: BTreeMap<String, String>,
    /// Of a job, inner repetitions of the ranking metric in one process. Of a service, operations a
    /// second in even stretches of the measured time, in order, whatever the ranking metric is.
    pub windows: Vec<f64>,
    /// Seconds that each of the windows covers, when they are stretches of time; absent when they
    /// are repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// What the child process used.
    pub usage: Usage,
    /// What the processors' sensors showed around it.
    #[serde(default, skip_serializing_if = "Sensed::is_empty")]
    pub sensors: Sensed,
    /// File name of its latency histogram log, when it made one.
    pub histogram: Option<String>,
}

impl Sample {
    /// Seconds of measured time that the windows cover; `None` when they are not stretches of time.
    pub fn measured_s(&self) -> Option<f64> {
        let window_s = self.window_s?;
        Some(window_s * self.windows.len() as f64)
    }
}

/// The arm of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// The system itself, which figures are made of.
    Main,
    /// The same program again, to show what this machine calls a difference.
    Control,
    /// The system again, beside the load of the run ([`Run::beside`]).
    Beside,
}

/// What became of an invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "reason")]
pub enum Outcome {
    /// It ended well and its answer was the expected one.
    Done,
    /// It ended badly, or its answer was wrong; the reason says which.
    Failed(String),
    /// It was killed at its time limit.
    Hung(String),
}

/// The answer of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Units of work done: rows loaded, messages consumed.
    pub count: u64,
    /// Order-independent checksum of the result, as the workload defines it.
    pub checksum: String,
}

/// What one child process used. `None` means that it could not be read, never zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU seconds in user mode.
    pub user_s: Option<f64>,
    /// CPU seconds in the kernel.
    pub system_s: Option<f64>,
    /// Highest resident memory of the child, in bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Page faults that needed no I/O.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for I/O.
    pub major_faults: Option<u64>,
    /// Context switches that the process asked for by waiting.
    pub voluntary_switches: Option<u64>,
    /// Context switches that it was made to do.
    pub involuntary_switches: Option<u64>,
    /// Bytes passed to read-like calls.
    pub read_bytes: Option<u64>,
    /// Bytes passed to write-like calls.
    pub written_bytes: Option<u64>,
    /// Bytes that really reached the storage layer.
    pub storage_written_bytes: Option<u64>,
    /// Share of the machine's time that a hypervisor took away meanwhile, 0 to 1.
    pub steal: Option<f64>,
    /// CPU cores kept busy by other processes meanwhile.
    pub other_cores: Option<f64>,
    /// One-minute load average at the start.
    pub load: Option<f64>,
}

/// The machine that a run was made on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Hash of the facts that must agree for two runs to be compared without a mark.
    pub fingerprint: String,
    /// Facts in reading order: (name, value), for example `("cpu", "AMD EPYC 9354")`.
    pub facts: Vec<(String, String)>,
    /// What `doctor` found before the run.
    pub checks: Vec<MachineCheck>,
}

/// One finding of `doctor` about the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineCheck {
    /// Short kebab-case name: `governor`, `steal`.
    pub name: String,
    /// `good`, `spoils` (it will spoil a measurement) or `unknown`.
    pub state: String,
    /// What was seen, with its value.
    pub seen: String,
    /// What it costs a measurement.
    pub cost: String,
    /// How to mend it; empty when good.
    pub mend: String,
}

/// The name of our own method in [`Limit::independent`].
pub const OURS: &str = "ours";

/// What the machine can do: one measured ceiling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Stable kebab-case name: `copy-1`, `scan-all`, `inflate-1`, `disk-write-1mib`, `fsync`.
    pub name: String,
    /// Median of the repetitions.
    pub value: f64,
    /// Unit of the values: `B/s`, `ops/s`, `ns`.
    pub unit: String,
    /// The direction in which a machine is better.
    pub better: Better,
    /// Number of repetitions behind them.
    pub n: u32,
    /// Value of the lowest repetition.
    pub low: f64,
    /// Value of the highest repetition.
    pub high: f64,
    /// How it was measured, in a sentence.
    pub method: String,
    /// The other method and its value in the same unit, when an independent tool ran: that tool
    /// (`igzip`, `fio`, `dd`), or [`OURS`] where the tool did better and so is the limit.
    pub independent: Option<(String, f64)>,
    /// UTC time of the measurement, RFC 3339.
    pub measured_at: String,
}

/// The program that made a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Version of the package, from its manifest.
    pub version: String,
    /// Hash of the executable's bytes.
    pub hash: String,
    /// Git revision at build time, `unknown` outside a checkout; `+` appended when dirty.
    pub git_revision: String,
    /// `release` or `debug`: figures of a debug build are marked.
    pub profile: String,
}

impl Program {
    /// Why the sources of this program cannot be found again from its revision, if they cannot: it
    /// was built from a tree with changes that were never committed, or outside a checkout.
    pub fn untraceable(&self) -> Option<String> {
        untraceable(&self.git_revision)
    }
}

/// Revisions that records name and that are in no branch, because the history was rewritten before
/// it was published.
const LOST_REVISIONS: [&str; 1] = ["9154a291c754"];

/// Why the sources of `revision`, as [`Program::git_revision`] has it, cannot be found again.
pub fn untraceable(revision: &str) -> Option<String> {
    if let Some(clean) = revision.strip_suffix('+') {
        Some(format!(
            "changed tree: it was built from revision {clean} with changes that were not committed"
        ))
    } else if revision == "unknown" {
        Some("unknown revision: it was built outside a checkout".to_owned())
    } else if LOST_REVISIONS.contains(&revision) {
        Some(format!(
            "lost revision: {revision} is in no branch of the repository"
        ))
    } else {
        None
    }
}

/// A system of the plan and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemVersion {
    /// `dyno` or the peer's name.
    pub name: String,
    /// As the system itself reports it.
    pub version: String,
    /// Why it took no part, when it did not.
    pub missing: Option<String>,
}

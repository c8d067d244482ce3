//! The types of a `FIGURES.toml`: what a report states, in the form that the linter reads.
//!
//! The same form is made from a run, so that our reports answer to the rules that we hold against
//! others'. Every number is as the document prints it, in the unit that stands beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::schema::Better;

/// The version of the form that this program writes; a newer one is refused by name.
pub const FIGURES_VERSION: u32 = 4;

/// The figures of one report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Always `dyno-figures`, by which the file is known.
    pub magic: String,
    /// Version of the form; see [`FIGURES_VERSION`].
    pub version: u32,
    /// What the report is called.
    pub title: String,
    /// Where it can be read.
    pub source: String,
    /// `release` or `debug`, when the report says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// The revision of the sources, when the report says: `+` after it for a tree with changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Nanoseconds that reading the clock costs there, when the report says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_cost_ns: Option<f64>,
    /// What cannot be known from the report, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Measured numbers, each with an id that is unique in the file.
    #[serde(default, rename = "figure")]
    pub figures: Vec<QuotedFigure>,
    /// What the machine can do, by measurement or by the report's word.
    #[serde(default, rename = "limit")]
    pub limits: Vec<Ceiling>,
    /// Statements that one figure is better than another.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// Numbers of rows, messages or pages with what they should be.
    #[serde(default, rename = "count")]
    pub counts: Vec<Count>,
    /// Sums and averages with their parts.
    #[serde(default, rename = "total")]
    pub totals: Vec<Total>,
    /// Properties that the report states more than once.
    #[serde(default, rename = "property")]
    pub properties: Vec<Property>,
    /// Latency percentiles, a table for each test.
    #[serde(default, rename = "latency")]
    pub latencies: Vec<LatencyFigure>,
    /// Compression and decompression speeds, by codec and data.
    #[serde(default, rename = "codec")]
    pub codecs: Vec<CodecFigure>,
    /// Words for a spread (variance, deviation) with the samples behind them.
    #[serde(default, rename = "spread_word", skip_serializing_if = "Vec::is_empty")]
    pub spread_words: Vec<SpreadWord>,
    /// Conditions of the measurement that the report itself calls harmful.
    #[serde(default, rename = "condition", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Headings of cases and tables, with the parameters of what stands below them.
    #[serde(default, rename = "heading", skip_serializing_if = "Vec::is_empty")]
    pub headings: Vec<Heading>,
}

/// One measured number, as the report prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotedFigure {
    /// Unique in the file; claims name it.
    pub id: String,
    /// What was measured; figures of one case are comparable.
    pub case: String,
    /// The system that was measured; empty when there is only one.
    pub system: String,
    /// Metric name, for example `throughput`.
    pub metric: String,
    /// Unit of `value`, `low` and `high`.
    pub unit: String,
    /// The direction in which the metric is better.
    pub better: Better,
    /// The number printed; of several samples, their median.
    pub value: f64,
    /// Number of samples; absent when the report does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// Lower end of the printed spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the printed spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Samples that failed or hung and are not in `n`.
    #[serde(default)]
    pub failed: u32,
    /// Names the limit that bounds this figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Turns the limit's value into this figure's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_per_unit: Option<f64>,
    /// Seconds that one sample took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Units of work in one sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<f64>,
    /// Threads that did the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<f64>,
    /// Figures of one sweep differ in `threads` only; when absent, those of one case do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<String>,
    /// Requests in flight in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<f64>,
    /// Mean latency of the requests, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_mean_s: Option<f64>,
    /// Median latency of the requests, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p50_s: Option<f64>,
    /// The subject of the latency percentiles that belong to this figure; when absent, those whose
    /// subject is the figure's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<String>,
    /// The rate that the client was told to offer: in `unit` where that is a rate, else a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_rate: Option<f64>,
    /// The rate that was reached, for a figure that is not a rate itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_rate: Option<f64>,
    /// Whether requests left at their scheduled time, so that the figure tells what happens at that
    /// rate and not how far the system goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<bool>,
    /// Seconds by which the load generator lagged behind its schedule, 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_lag_s: Option<f64>,
    /// Whether the load generator says that it kept its schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_kept_up: Option<bool>,
    /// Seconds of measured time over which the report shows the rate of a service by time; 0 when
    /// it does not. Absent for a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_s: Option<f64>,
    /// How far the rate of a service changed while it was measured: the last third of that time
    /// against the first, less 1. Absent when no change is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<f64>,
    /// The machine, where figures of several stand in one report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The program or its hash, where figures of several stand in one report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether the row tells the reader that machine or program differ.
    #[serde(default)]
    pub marked: bool,
    /// What the pages of a compressed-data test held: `same-filled`, `random`, `text`,
    /// `unstated`; absent for any other test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<String>,
    /// What the figure was computed from: ids of figures, names of limits, subjects of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
}

impl QuotedFigure {
    /// A figure of which no more is known than this.
    pub fn new(id: &str, unit: &str, better: Better, value: f64) -> Self {
        Self {
            id: id.to_owned(),
            case: id.to_owned(),
            system: String::new(),
            metric: String::new(),
            unit: unit.to_owned(),
            better,
            value,
            n: None,
            low: None,
            high: None,
            failed: 0,
            limit: None,
            limit_per_unit: None,
            duration_s: None,
            count: None,
            threads: None,
            sweep: None,
            in_flight: None,
            latency_mean_s: None,
            latency_p50_s: None,
            latency: None,
            offered_rate: None,
            achieved_rate: None,
            open_loop: None,
            generator_lag_s: None,
            generator_kept_up: None,
            windows_s: None,
            drift: None,
            machine: None,
            program: None,
            marked: false,
            pages: None,
            from: Vec::new(),
        }
    }
}

/// What a machine can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The name by which figures refer to it.
    pub name: String,
    /// The median, or the number printed.
    pub value: f64,
    /// Unit of the three values.
    pub unit: String,
    /// The direction in which a machine is better.
    pub better: Better,
    /// The best repetition, when the report says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
    /// What another method or tool measured, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub independent: Option<f64>,
    /// Whether it was measured alone on this machine, rather than asserted or looked up.
    pub measured: bool,
}

/// A statement that one figure is better than another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The words of the report, which findings quote.
    pub text: String,
    /// Id of the figure said to be better.
    pub winner: String,
    /// Id of the figure said to be worse.
    pub loser: String,
    /// How many times as good the winner is said to be: 1.08 where the words are "8% faster".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// What the words of the claim admit to differ: `case`, `machine`, `program`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub across: Vec<String>,
    /// Interval of the ratio winner / loser (above 1 supports the claim), when one was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_low: Option<f64>,
    /// Upper end of that interval; see `ratio_low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_high: Option<f64>,
    /// What the machine calls a difference between two runs of one program: 0.02 is 2%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_band: Option<f64>,
}

/// A number of things with what it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// What is counted, in words.
    pub subject: String,
    /// The number as the report states it, or as the system answered.
    pub stated: f64,
    /// What was put in, or what the specification says.
    pub expected: f64,
    /// Where the expected number comes from.
    pub why: String,
    /// Whether the report gives a rounded number ("about 10.8 billion").
    #[serde(default)]
    pub about: bool,
}

/// How a [`Total`] is made of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TotalKind {
    /// The total is the sum of its parts.
    Sum,
    /// The total is the arithmetic mean of its parts.
    Mean,
}

/// A sum or an average with its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Total {
    /// What is added up or averaged.
    pub subject: String,
    /// The total, as the report prints it.
    pub stated: f64,
    /// How the total is made of its parts.
    pub kind: TotalKind,
    /// The parts, as the report prints them.
    pub parts: Vec<f64>,
}

/// A property that a report states more than once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Property {
    /// The property that is described.
    pub subject: String,
    /// Unit of every value that names no other.
    pub unit: String,
    /// Every statement of it, which must agree.
    pub values: Vec<PropertyValue>,
}

/// One statement of a [`Property`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropertyValue {
    /// The number, as it is printed there.
    pub value: f64,
    /// Where in the report it stands.
    pub at: String,
    /// Its unit, where it is not that of the property.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// Latency percentiles of one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyFigure {
    /// The test; figures refer to it by this name.
    pub subject: String,
    /// Unit of the latencies and their mean.
    pub unit: String,
    /// Requests that were measured, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<f64>,
    /// Mean of all latencies, in `unit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Pairs of percentile and latency, for example `[99.9, 66.0]`.
    pub points: Vec<(f64, f64)>,
}

/// Speeds of one codec on one kind of data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodecFigure {
    /// For example `lz4` or `zstd-1`.
    pub codec: String,
    /// Codecs of one report are compared by it: the higher compresses harder.
    pub strength: u32,
    /// The data; codecs are compared on the same data only.
    pub data: String,
    /// Unit of both speeds, per byte of plain data.
    pub unit: String,
    /// Speed of compression, when it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<f64>,
    /// Speed of decompression, when it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decompress: Option<f64>,
    /// Plain bytes over compressed bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

/// Something that spoils a measurement and that the report names: load, a run that was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Its name in a word or two.
    pub name: String,
    /// What was seen, with its numbers.
    pub seen: String,
}

/// A word for a spread, with the samples that it describes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadWord {
    /// The quantity that varies.
    pub subject: String,
    /// The word: `variance`, `standard deviation`, `coefficient of variation`, `standard error`,
    /// `range`, `range over mean`, `half range over mean`.
    pub word: String,
    /// The number printed for it.
    pub stated: f64,
    /// Its unit, when one is printed: `%` for a share.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The samples that vary, as they are printed.
    pub samples: Vec<f64>,
}

/// The heading of a case or of a table, over one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heading {
    /// The heading as it is printed.
    pub text: String,
    /// The case below it.
    pub case: String,
    /// The parameters of that case which are numbers.
    pub parameters: BTreeMap<String, f64>,
}

//! The types of a `FIGURES.toml`: what a report states, in the form that the linter reads.
//!
//! The same form is made from a run, so that our reports answer to the rules that we hold against
//! others'. Every number is as the document prints it, in the unit that stands beside it.

use serde::{Deserialize, Serialize};

use crate::schema::Better;

/// The version of the form that this program writes; a newer one is refused by name.
pub const FIGURES_VERSION: u32 = 3;

/// The figures of one report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Always `dyno-figures`.
    pub magic: String,
    /// See [`FIGURES_VERSION`].
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
    /// Measured numbers.
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
    /// Latency percentiles.
    #[serde(default, rename = "latency")]
    pub latencies: Vec<LatencyFigure>,
    /// Compression and decompression speeds.
    #[serde(default, rename = "codec")]
    pub codecs: Vec<CodecFigure>,
    /// Words for a spread (variance, deviation) with the samples behind them.
    #[serde(default, rename = "spread_word", skip_serializing_if = "Vec::is_empty")]
    pub spread_words: Vec<SpreadWord>,
    /// Conditions of the measurement that the report itself calls harmful.
    #[serde(default, rename = "condition", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One measured number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotedFigure {
    /// Unique in the file; claims name it.
    pub id: String,
    /// What was measured; figures of one case are comparable.
    pub case: String,
    /// The system measured.
    pub system: String,
    /// Metric name, for example `throughput`.
    pub metric: String,
    /// Unit of `value`, `low` and `high`.
    pub unit: String,
    /// Which direction is better.
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
    /// Mean latency in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_mean_s: Option<f64>,
    /// Median latency in seconds.
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
    /// Of a service: seconds of measured time over which the report shows the rate by time; 0 when
    /// it does not. Absent for a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_s: Option<f64>,
    /// Of a service whose rate is shown to change while it is measured: the last third of that time
    /// against the first, less 1.
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
    /// Figures name it.
    pub name: String,
    /// The median, or the number printed.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Best repetition, when known.
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
    /// The words.
    pub text: String,
    /// Id of the figure said to be better.
    pub winner: String,
    /// Id of the figure said to be worse.
    pub loser: String,
    /// How many times as good the winner is said to be: 1.08 where the words are "8% faster".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// In what the words say that the two differ: `case`, `machine`, `program`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub across: Vec<String>,
    /// Interval of the ratio winner / loser (above 1 supports the claim), when one was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_low: Option<f64>,
    /// See `ratio_low`.
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
    /// What is counted.
    pub subject: String,
    /// As the report states it, or as the system answered.
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
    /// The sum.
    Sum,
    /// The arithmetic mean.
    Mean,
}

/// A sum or an average with its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Total {
    /// What is added up.
    pub subject: String,
    /// As printed.
    pub stated: f64,
    /// Sum or mean.
    pub kind: TotalKind,
    /// As printed.
    pub parts: Vec<f64>,
}

/// A property that a report states more than once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Property {
    /// What is described.
    pub subject: String,
    /// Unit of every value that names no other.
    pub unit: String,
    /// Every statement of it.
    pub values: Vec<PropertyValue>,
}

/// One statement of a [`Property`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropertyValue {
    /// The number.
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
    /// The test.
    pub subject: String,
    /// Unit of the latencies.
    pub unit: String,
    /// Requests measured, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<f64>,
    /// Their mean, in `unit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// (percentile, latency): `[99.9, 66.0]`.
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
    /// Compression speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<f64>,
    /// Decompression speed.
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
    /// What was seen.
    pub seen: String,
}

/// A word for a spread, with the samples that it describes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadWord {
    /// What varies.
    pub subject: String,
    /// The word: `variance`, `standard deviation`, `coefficient of variation`, `standard error`,
    /// `range`, `range over mean`, `half range over mean`.
    pub word: String,
    /// The number printed for it.
    pub stated: f64,
    /// Its unit, when one is printed: `%` for a share.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The samples, as printed.
    pub samples: Vec<f64>,
}

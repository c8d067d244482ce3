//! Result files of other tools as figures. A reader is one small file; it says what its file cannot
//! tell, because a rule that had nothing to look at is not a rule that found nothing.

mod clickbench;
mod criterion;
mod fio;
mod google_benchmark;
mod hyperfine;
mod jmh;
mod pgbench;
mod pytest_benchmark;
mod redis_benchmark;
mod wrk;

use dyno_record::{
    Better, FIGURES_VERSION, Figures, LatencyFigure, QuotedFigure, Total, TotalKind,
};
use serde_json::Value;

/// Why a file gives no figures.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// No reader recognised the content, whatever the name of the file says.
    #[error(
        "no figures that lint can read: it reads runs (directories with run.json), figures in \
         *.toml, and the files of {}",
        tools()
    )]
    Unknown,
    /// A reader knows it and cannot read it.
    #[error("it looks like a file of {tool}, but {reason}")]
    Malformed {
        /// Name of the tool whose reader recognised the file.
        tool: &'static str,
        /// What is missing or wrong.
        reason: String,
    },
}

/// A file that is looked at.
struct Source<'a> {
    /// Its path as the user gave it.
    name: &'a str,
    text: &'a str,
    /// `Null` when it is not JSON.
    json: Value,
}

type Read = fn(&Source<'_>, &mut Figures) -> Result<(), String>;

struct Reader {
    tool: &'static str,
    /// Whether the content is this tool's.
    knows: fn(&Source<'_>) -> bool,
    read: Read,
    /// What the file cannot tell.
    unknown: &'static [&'static str],
}

const READERS: [Reader; 10] = [
    fio::READER,
    hyperfine::READER,
    criterion::READER,
    google_benchmark::READER,
    jmh::READER,
    pytest_benchmark::READER,
    pgbench::READER,
    wrk::READER,
    redis_benchmark::READER,
    clickbench::READER,
];

fn tools() -> String {
    READERS.map(|reader| reader.tool).join(", ")
}

/// The figures in `text`, the content of the file called `name`; the tool is recognised by the
/// content.
///
/// # Errors
/// When no tool is known by this content, or when something is missing in it.
pub fn read_foreign(name: &str, text: &str) -> Result<Figures, ForeignError> {
    let source = Source {
        name,
        text,
        // Text that is not JSON is not an error yet, because half of the tools print plain text.
        // Their readers look at `text`.
        json: serde_json::from_str(text).unwrap_or(Value::Null),
    };
    let mut readers = READERS.iter();
    let reader = readers.find(|reader| (reader.knows)(&source));
    let reader = reader.ok_or(ForeignError::Unknown)?;
    let mut figures = Figures {
        magic: "dyno-figures".to_owned(),
        version: FIGURES_VERSION,
        title: format!("{name}, of {}", reader.tool),
        source: name.to_owned(),
        unknown: reader.unknown.iter().map(|&s| s.to_owned()).collect(),
        ..Figures::default()
    };
    (reader.read)(&source, &mut figures).map_err(|reason| ForeignError::Malformed {
        tool: reader.tool,
        reason,
    })?;
    make_unique(&mut figures);
    Ok(figures)
}

/// Files repeat names (a job run twice); rules need ids that are unique.
fn make_unique(figures: &mut Figures) {
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for figure in &mut figures.figures {
        let times = seen.entry(figure.id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            figure.id = format!("{} ({times})", figure.id);
        }
    }
}

/// The number at a JSON pointer, or which one is missing.
fn number(value: &Value, pointer: &str) -> Result<f64, String> {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.ok_or_else(|| format!("there is no number at {pointer}"))
}

/// The text at a JSON pointer.
fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// The list at a JSON pointer, or which one is missing.
fn list<'a>(value: &'a Value, pointer: &str) -> Result<&'a Vec<Value>, String> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.ok_or_else(|| format!("there is no list at {pointer}"))
}

/// The numbers in a list; what is not one is left out.
fn numbers(value: Option<&Value>) -> Vec<f64> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_f64).collect()
}

/// A count in a JSON number; more than fits is the most that fits.
fn small(value: f64) -> u32 {
    // A cast from a float saturates, and turns NaN into 0.
    value as u32
}

/// A figure of `metric` for `case` on `system`.
fn figure(
    case: &str,
    system: &str,
    metric: &str,
    unit: &str,
    better: Better,
    value: f64,
) -> QuotedFigure {
    let words = [case, system, metric];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let mut figure = QuotedFigure::new(&words.join("/"), unit, better, value);
    figure.case = case.to_owned();
    figure.system = system.to_owned();
    figure.metric = metric.to_owned();
    figure
}

/// The number of samples and their range.
fn spread(figure: &mut QuotedFigure, samples: &[f64]) {
    figure.n = u32::try_from(samples.len()).ok();
    // The range of one sample is the sample, which would look like a figure without any spread.
    if samples.len() > 1 {
        figure.low = samples.iter().copied().reduce(f64::min);
        figure.high = samples.iter().copied().reduce(f64::max);
    }
}

/// The percentiles of a map such as `{"50.0": 1.2, "99.9": 3.4}`.
fn percentiles(subject: &str, unit: &str, map: Option<&Value>) -> Option<LatencyFigure> {
    let entries = map?.as_object()?.iter();
    let mut points: Vec<(f64, f64)> = entries
        .filter_map(|(name, value)| Some((name.parse().ok()?, value.as_f64()?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    (!points.is_empty()).then(|| LatencyFigure {
        subject: subject.to_owned(),
        unit: unit.to_owned(),
        count: None,
        mean: None,
        points,
    })
}

/// The printed mean with the samples behind it, for the rule on totals.
fn mean_of(subject: &str, stated: f64, samples: Vec<f64>) -> Option<Total> {
    (!samples.is_empty()).then(|| Total {
        subject: format!("mean of {subject}"),
        stated,
        kind: TotalKind::Mean,
        parts: samples,
    })
}

/// A number with a unit of time stuck to it, in seconds: `1.04ms`, `30.00s`, `2.5m`.
fn seconds(text: &str) -> Option<f64> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (value, unit) = text.split_at(at);
    let factor = match unit {
        "us" | "\u{b5}s" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(value.parse::<f64>().ok()? * factor)
}

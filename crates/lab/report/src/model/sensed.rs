//! Clocks and temperatures of a run, over all its samples.

use dyno_record::{Sensed, Span};

use super::report::Report;
use crate::units::counted;

/// What a report says of the clock and the temperature, by name. A record of an earlier version,
/// which neither has them nor says why, gives nothing.
pub(crate) fn rows(report: &Report) -> Vec<(String, String)> {
    let clock = |sensed: &Sensed| sensed.clock_mhz;
    let temperature = |sensed: &Sensed| sensed.temperature_c;
    let mut rows = Vec::new();
    for (name, spans, show) in [
        ("clock", spans(report, clock), mhz as fn(f64) -> String),
        (
            "temperature",
            spans(report, temperature),
            celsius as fn(f64) -> String,
        ),
    ] {
        let text = match (Span::over(&spans), report.run.unread.get(name)) {
            (Some(all), _) => span_text(&all, spans.len(), show),
            (None, Some(reason)) => format!("not available: {reason}"),
            (None, None) => continue,
        };
        rows.push((format!("{name} around samples"), text));
    }
    rows
}

fn spans(report: &Report, of: fn(&Sensed) -> Option<Span>) -> Vec<Span> {
    let samples = report.samples.iter();
    samples.filter_map(|sample| of(&sample.sensors)).collect()
}

fn span_text(all: &Span, samples: usize, show: fn(f64) -> String) -> String {
    let read = format!(
        "read before and after {}",
        counted(samples as u64, "sample")
    );
    let [low, middle, high] = [all.min, all.median, all.max].map(show);
    if low == high {
        format!("{middle} throughout ({read})")
    } else {
        format!("{middle} in the middle, {low} to {high} ({read})")
    }
}

fn mhz(value: f64) -> String {
    format!("{:.2} GHz", value / 1e3)
}

fn celsius(value: f64) -> String {
    format!("{value:.0} °C")
}

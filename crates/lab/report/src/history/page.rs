//! A history as one page: a plot of each series with its changes and notes, and the runs below it.
//! The plots are drawn here, so that the page needs no script.

use dyno_record::Note;
use serde::Serialize;

use super::print::{about, change_text, spread, title};
use super::{History, HistorySeries};
use crate::error::ReportError;
use crate::render::print_history;
use crate::units::quantity;

/// The drawing in its own units, which the page scales.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 28.0;
/// Lines across the plot, with the value of each.
const GRID: usize = 4;
/// Dates below the plot at most.
const DATES: usize = 6;

/// The page as its template sees it.
#[derive(Serialize)]
struct HistoryPage {
    charts: Vec<Chart>,
    width: f64,
    height: f64,
    top: f64,
    bottom: f64,
    left: f64,
    right: f64,
}

#[derive(Serialize)]
struct Chart {
    title: String,
    about: String,
    metric: String,
    line: String,
    dots: Vec<Dot>,
    grid: Vec<Mark>,
    dates: Vec<Mark>,
    levels: Vec<Level>,
    changes: Vec<Mark>,
    notes: Vec<Mark>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Dot {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
    text: String,
}

/// A text at a place of an axis.
#[derive(Serialize)]
struct Mark {
    at: f64,
    text: String,
    is_bad: bool,
}

/// The median of the runs between two changes.
#[derive(Serialize)]
struct Level {
    from: f64,
    to: f64,
    y: f64,
}

#[derive(Serialize)]
struct Row {
    cells: [String; 5],
    change: String,
    is_bad: bool,
}

impl History {
    /// The history as one HTML file that needs nothing else.
    ///
    /// # Errors
    /// Only when the template is at fault.
    pub fn to_html(&self) -> Result<String, ReportError> {
        let chart = |series: &HistorySeries| chart(series, &self.notes);
        print_history(&HistoryPage {
            charts: self.series.iter().map(chart).collect(),
            width: WIDTH,
            height: HEIGHT,
            top: TOP,
            bottom: HEIGHT - BOTTOM,
            left: LEFT,
            right: WIDTH - RIGHT,
        })
    }
}

/// Where runs and values lie in the drawing. Runs have equal distances, because days without a run
/// say nothing.
struct Scale {
    runs: usize,
    low: f64,
    high: f64,
}

impl Scale {
    fn from_series(series: &HistorySeries) -> Scale {
        let ends = |point: &super::HistoryPoint| {
            let low = point.low.unwrap_or(point.median);
            (low, point.high.unwrap_or(point.median))
        };
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for point in &series.points {
            let (below, above) = ends(point);
            low = low.min(below);
            high = high.max(above);
        }
        // A flat series lies in the middle, and no dot on the frame.
        let room = match high - low {
            0.0 => (high.abs() * 0.05).max(f64::MIN_POSITIVE),
            range => range * 0.08,
        };
        Scale {
            runs: series.points.len(),
            low: low - room,
            high: high + room,
        }
    }

    fn x(&self, run: f64) -> f64 {
        let step = (WIDTH - LEFT - RIGHT) / self.runs as f64;
        round(LEFT + (run + 0.5) * step)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM))
    }
}

/// A tenth of a unit is less than a pixel, and keeps the file small.
fn round(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

fn chart(series: &HistorySeries, notes: &[Note]) -> Chart {
    let scale = Scale::from_series(series);
    let points = series.points.iter().enumerate();
    let dots: Vec<Dot> = points
        .map(|(at, point)| Dot {
            x: scale.x(at as f64),
            y: scale.y(point.median),
            low: scale.y(point.low.unwrap_or(point.median)),
            high: scale.y(point.high.unwrap_or(point.median)),
            text: format!(
                "{} {}: {}, n = {}",
                point.started_at,
                point.revision,
                quantity(point.median, &series.unit),
                point.n
            ),
        })
        .collect();
    let places: Vec<String> = dots
        .iter()
        .map(|dot| format!("{},{}", dot.x, dot.y))
        .collect();
    Chart {
        title: title(series),
        about: about(series),
        metric: series.metric.clone(),
        line: places.join(" "),
        dots,
        grid: grid(series, &scale),
        dates: dates(series, &scale),
        levels: levels(series, &scale),
        changes: series
            .changes
            .iter()
            .map(|change| Mark {
                at: scale.x(change.at as f64 - 0.5),
                text: change_text(change),
                is_bad: !change.is_better,
            })
            .collect(),
        notes: series
            .notes(notes)
            .map(|note| Mark {
                at: scale.x(runs_before(series, note) as f64 - 0.5),
                text: format!("{}: {}", note.date, note.text),
                is_bad: false,
            })
            .collect(),
        rows: rows(series),
    }
}

fn runs_before(series: &HistorySeries, note: &Note) -> usize {
    let before = series.points.iter().filter(|p| p.started_at < note.date);
    before.count()
}

fn grid(series: &HistorySeries, scale: &Scale) -> Vec<Mark> {
    // Half a step in, so that no line of the grid lies on the frame.
    let value =
        |line: usize| scale.low + (scale.high - scale.low) * (line as f64 + 0.5) / GRID as f64;
    let lines = (0..GRID).map(value).map(|value| Mark {
        at: scale.y(value),
        text: quantity(value, &series.unit),
        is_bad: false,
    });
    lines.collect()
}

fn dates(series: &HistorySeries, scale: &Scale) -> Vec<Mark> {
    let every = series.points.len().div_ceil(DATES);
    let shown = series.points.iter().enumerate().step_by(every.max(1));
    let dates = shown.map(|(at, point)| Mark {
        at: scale.x(at as f64),
        text: point.started_at.chars().take(10).collect(),
        is_bad: false,
    });
    dates.collect()
}

fn levels(series: &HistorySeries, scale: &Scale) -> Vec<Level> {
    let Some(first) = series.changes.first() else {
        return Vec::new();
    };
    let starts = std::iter::once((0, first.before));
    let starts: Vec<(usize, f64)> = starts
        .chain(
            series
                .changes
                .iter()
                .map(|change| (change.at, change.after)),
        )
        .collect();
    let levels = starts.iter().enumerate().map(|(index, (start, value))| {
        let end = starts.get(index + 1).map_or(scale.runs, |(next, _)| *next);
        Level {
            from: scale.x(*start as f64 - 0.5),
            to: scale.x(end as f64 - 0.5),
            y: scale.y(*value),
        }
    });
    levels.collect()
}

fn rows(series: &HistorySeries) -> Vec<Row> {
    let points = series.points.iter().enumerate();
    let rows = points.map(|(at, point)| {
        let change = series.changes.iter().find(|change| change.at == at);
        Row {
            cells: [
                point.started_at.clone(),
                point.revision.clone(),
                quantity(point.median, &series.unit),
                spread(series, point),
                point.n.to_string(),
            ],
            change: change.map_or(String::new(), change_text),
            is_bad: change.is_some_and(|change| !change.is_better),
        }
    });
    rows.collect()
}

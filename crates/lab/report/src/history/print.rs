//! Prints a history as a Markdown table for each series.

use dyno_record::Note;

use super::{History, HistoryPoint, HistorySeries, RUNS_MIN, SeriesChange};
use crate::render::markdown_cell;
use crate::units::{counted, quantity, range_text, share_text};

impl History {
    /// A table for each series with one line a run, the oldest first, with changes and notes at
    /// their places.
    pub fn to_markdown(&self) -> String {
        let series = self.series.iter().map(|one| table(one, &self.notes));
        series.collect::<Vec<_>>().join("\n")
    }
}

fn table(series: &HistorySeries, notes: &[Note]) -> String {
    let mut text = format!("## {}\n\n{}\n\n", title(series), about(series));
    text.push_str(&format!(
        "| run | revision | {} | spread | n | |\n|---|---|---|---|---|---|\n",
        markdown_cell(&series.metric)
    ));
    let mut notes = series.notes(notes).peekable();
    for (at, point) in series.points.iter().enumerate() {
        // Notes come the oldest first, as the points do, so each is printed before the first run
        // that it may have changed.
        while let Some(note) = notes.next_if(|note| note.date <= point.started_at) {
            text.push_str(&note_row(note));
        }
        let change = series.changes.iter().find(|change| change.at == at);
        text.push_str(&row(series, point, change));
    }
    notes.for_each(|note| text.push_str(&note_row(note)));
    if series.points.len() < RUNS_MIN {
        text.push_str(&format!(
            "\nFewer than {RUNS_MIN} runs: no change can be shown yet.\n"
        ));
    }
    text
}

pub(super) fn title(series: &HistorySeries) -> String {
    let HistorySeries {
        case,
        metric,
        system,
        ..
    } = series;
    format!("{case}: {metric} of {system}")
}

/// Where and how the runs were made.
pub(super) fn about(series: &HistorySeries) -> String {
    let size = format!("{:?}", series.size).to_lowercase();
    let mut text = format!("{} {size}", series.suite);
    if !series.setting.is_empty() {
        text.push_str(&format!(" with {}", series.setting));
    }
    if series.profile != "release" {
        text.push_str(&format!(", a {} build", series.profile));
    }
    let runs = counted(series.points.len() as u64, "run");
    format!(
        "{text}, {} ({}), {runs}",
        series.machine, series.fingerprint
    )
}

/// `10.2% more, better (p = 0.001)`.
pub(super) fn change_text(change: &SeriesChange) -> String {
    let direction = if change.change > 0.0 { "more" } else { "less" };
    let worth = if change.is_better { "better" } else { "worse" };
    // A change from zero has no share, as with errors that were never seen before.
    if change.before == 0.0 {
        let way = if change.after > 0.0 { "up" } else { "down" };
        return format!("{way} from 0, {worth} (p = {:.3})", change.p_value);
    }
    let share = share_text(change.change.abs());
    format!("{share} {direction}, {worth} (p = {:.3})", change.p_value)
}

/// The ends of the spread, or a dash for one sample.
pub(super) fn spread(series: &HistorySeries, point: &HistoryPoint) -> String {
    match point.low.zip(point.high) {
        Some((low, high)) => range_text(low, high, &series.unit),
        None => "–".to_owned(),
    }
}

fn row(series: &HistorySeries, point: &HistoryPoint, change: Option<&SeriesChange>) -> String {
    let interval = spread(series, point);
    let change = change.map_or(String::new(), |change| {
        format!("**{}**", change_text(change))
    });
    let value = quantity(point.median, &series.unit);
    let (started_at, revision) = (&point.started_at, markdown_cell(&point.revision));
    let n = point.n;
    format!("| {started_at} | {revision} | {value} | {interval} | {n} | {change} |\n")
}

fn note_row(note: &Note) -> String {
    let (date, text) = (markdown_cell(&note.date), markdown_cell(&note.text));
    format!("| {date} | | | | | {text} |\n")
}

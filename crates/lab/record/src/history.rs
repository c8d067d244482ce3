//! What is kept of runs over time: a file with one line of JSON for each run, and dated notes.
//!
//! A record is megabytes and stays where it was made. Its line is a few hundred bytes for each
//! figure, so that a branch in continuous integration can keep years of them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::RecordError;
use crate::run_dir::replace_file;
use crate::schema::{Better, Size};

/// The version that this program writes; a newer one is refused by name.
pub const HISTORY_VERSION: u32 = 1;

const MAGIC: &str = "dyno-history";

/// One run of a suite, as one line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// Always `dyno-history`, by which the line is known.
    pub magic: String,
    /// Version of the line; see [`HISTORY_VERSION`].
    pub version: u32,
    /// Name of the record's folder.
    pub run: String,
    /// Name of the suite that ran.
    pub suite: String,
    /// Which of the suite's sizes ran.
    pub size: Size,
    /// UTC start of the run, RFC 3339.
    pub started_at: String,
    /// Git revision of our program.
    pub revision: String,
    /// Hash of our program's executable.
    pub program_hash: String,
    /// Build profile of our program: `release` or `debug`.
    pub profile: String,
    /// Hash of the machine's facts. Runs of two machines are never of one series.
    pub fingerprint: String,
    /// The processor in words, for readers.
    pub machine: String,
    /// Parameters that were set for the run and what ran beside it; empty for a plain run.
    pub setting: String,
    /// The figures of the run that were not withdrawn.
    pub figures: Vec<HistoryFigure>,
}

/// One figure of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryFigure {
    /// Name of the case, unique in the run.
    pub case: String,
    /// Hash of the parameters of the case, and of those that a variant has of its own: what was
    /// changed begins a new series.
    pub params: String,
    /// `dyno` or a peer's name.
    pub system: String,
    /// The version that the system reported.
    pub system_version: String,
    /// Name of the metric, for example `throughput`.
    pub metric: String,
    /// Whether the metric ranks the case.
    pub ranks: bool,
    /// Unit of the numbers below.
    pub unit: String,
    /// The direction in which the metric is better.
    pub better: Better,
    /// Invocations that ended well, which `median` is over.
    pub n: usize,
    /// Median of the metric over these invocations.
    pub median: f64,
    /// Lower end of its interval; absent with one sample.
    pub low: Option<f64>,
    /// Upper end of its interval; absent with one sample.
    pub high: Option<f64>,
}

/// Something that happened on a day and may explain a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// UTC, `2026-11-23` or with a time as RFC 3339 has it.
    pub date: String,
    /// What happened, for a reader of the plot.
    pub text: String,
    /// The pattern of the cases that it is about; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// How the fingerprint of the machine that it is about begins; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Notes {
    #[serde(default, rename = "note")]
    notes: Vec<Note>,
}

impl HistoryLine {
    /// Whether two lines are of the same execution of a suite.
    pub fn is_same_run(&self, other: &HistoryLine) -> bool {
        let of = |line: &HistoryLine| {
            let of_machine = (line.suite.clone(), line.fingerprint.clone());
            (
                of_machine,
                line.started_at.clone(),
                line.program_hash.clone(),
            )
        };
        of(self) == of(other)
    }
}

/// Reads a history file, in its order.
///
/// # Errors
/// With file and line: what is not a line of a history, or one of a newer version.
pub fn read_history(path: &Path) -> Result<Vec<HistoryLine>, RecordError> {
    let text = std::fs::read_to_string(path).map_err(RecordError::io(path, "read"))?;
    lines_of(path, &text)
}

fn lines_of(path: &Path, text: &str) -> Result<Vec<HistoryLine>, RecordError> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(at, line)| parsed(path, at + 1, line)).collect()
}

fn parsed(path: &Path, line: usize, text: &str) -> Result<HistoryLine, RecordError> {
    let malformed = |reason: String| RecordError::Malformed {
        path: path.to_path_buf(),
        line,
        reason,
    };
    let value: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| malformed(format!("not a line of a history: {error}")))?;
    if value["magic"] != MAGIC {
        return Err(malformed(format!(
            "not a line of a history: no magic {MAGIC:?}"
        )));
    }
    match value["version"].as_u64() {
        Some(found) if found > u64::from(HISTORY_VERSION) => Err(RecordError::Newer {
            path: path.to_path_buf(),
            format: MAGIC,
            found,
            newest: HISTORY_VERSION,
        }),
        _ => serde_json::from_value(value)
            .map_err(|error| malformed(format!("not a line of a history: {error}"))),
    }
}

/// Appends a run to a history file, which is made when it is not there. Returns false, and writes
/// nothing, when the file has the run already.
///
/// # Errors
/// When the file cannot be read as a history, or not written.
pub fn append_history(path: &Path, line: &HistoryLine) -> Result<bool, RecordError> {
    let mut bytes = Vec::new();
    if path.exists() {
        let text = std::fs::read_to_string(path).map_err(RecordError::io(path, "read"))?;
        let known = lines_of(path, &text)?;
        // A script that is run again appends the same record again. A second line would count the
        // run twice in every series.
        if known.iter().any(|known| known.is_same_run(line)) {
            return Ok(false);
        }
        // An editor or a merge may have cut the last line end. The new run would then continue the
        // line of the last one, and the file could not be read again.
        if !text.is_empty() && !text.ends_with('\n') {
            bytes.push(b'\n');
        }
    }
    serde_json::to_writer(&mut bytes, line).map_err(|error| RecordError::Unstorable {
        path: path.to_path_buf(),
        object: format!("line of {}", line.run),
        reason: error.to_string(),
    })?;
    bytes.push(b'\n');
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(RecordError::io(path, "open"))?;
    // One call for the whole line, so that two jobs that append at once do not interleave.
    file.write_all(&bytes)
        .and_then(|()| file.sync_data())
        .map_err(RecordError::io(path, "append"))?;
    Ok(true)
}

/// Reads a file of notes, the oldest first.
///
/// # Errors
/// When it cannot be read, with the line of an unknown key or a date that is not one.
pub fn read_notes(path: &Path) -> Result<Vec<Note>, RecordError> {
    let text = std::fs::read_to_string(path).map_err(RecordError::io(path, "read"))?;
    let malformed = |offset: usize, reason: String| RecordError::Malformed {
        path: path.to_path_buf(),
        line: text[..offset.min(text.len())].matches('\n').count() + 1,
        reason,
    };
    let mut notes = toml::from_str::<Notes>(&text)
        .map_err(|error| {
            malformed(
                error.span().map_or(0, |s| s.start),
                error.message().to_owned(),
            )
        })?
        .notes;
    if let Some(wrong) = notes.iter().find(|note| !is_date(&note.date)) {
        // The parsed form has no positions, and a date that is wrong is seldom there twice.
        let offset = text.find(&wrong.date).unwrap_or(0);
        return Err(malformed(offset, not_a_date(&wrong.date)));
    }
    notes.sort_by(|a, b| a.date.cmp(&b.date));
    Ok(notes)
}

/// Appends a note to a file of notes, which is made when it is not there.
///
/// # Errors
/// When the file is not one of notes, the date is not one, or the file cannot be written.
pub fn append_note(path: &Path, note: Note) -> Result<(), RecordError> {
    let malformed = |reason: String| RecordError::Unstorable {
        path: path.to_path_buf(),
        object: format!("note {:?}", note.text),
        reason,
    };
    if !is_date(&note.date) {
        return Err(malformed(not_a_date(&note.date)));
    }
    let mut text = String::new();
    if path.exists() {
        read_notes(path)?;
        text = std::fs::read_to_string(path).map_err(RecordError::io(path, "read"))?;
        text.push('\n');
    }
    // The text before stays as its author wrote it, with comments.
    let one = toml::to_string(&Notes {
        notes: vec![note.clone()],
    });
    text.push_str(&one.map_err(|error| malformed(error.to_string()))?);
    // A file may have its notes in an array in brackets, which takes no further table.
    toml::from_str::<Notes>(&text).map_err(|error| {
        let reason = error.message();
        malformed(format!(
            "cannot be added to the file as a [[note]]: {reason}"
        ))
    })?;
    replace_file(path, text.as_bytes())
}

fn not_a_date(text: &str) -> String {
    format!("{text:?} is not a date; write it like 2026-11-23 or 2026-11-23T10:15:00Z")
}

/// `2026-11-23`, alone or before a time; such dates sort as text.
fn is_date(text: &str) -> bool {
    let (day, time) = text.split_at_checked(10).unwrap_or((text, ""));
    let fields: Vec<&str> = day.split('-').collect();
    let number = |text: &str, len: usize, range: std::ops::RangeInclusive<u32>| {
        text.len() == len && text.parse().is_ok_and(|number| range.contains(&number))
    };
    let [year, month, day] = fields[..] else {
        return false;
    };
    let is_day = number(year, 4, 1970..=9999) && number(month, 2, 1..=12) && number(day, 2, 1..=31);
    is_day && (time.is_empty() || time.starts_with('T') && time.ends_with('Z') && time.len() >= 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_alone_or_with_a_time() {
        for date in ["2026-11-23", "2026-01-31T09:15:00Z"] {
            assert!(is_date(date), "{date}");
        }
        for text in [
            "",
            "today",
            "2026-13-01",
            "2026-1-2",
            "2026-11-23 10:00",
            "23.11.2026",
            "é",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }
}

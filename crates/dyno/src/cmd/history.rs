//! `dyno history`: figures over the runs of a machine, with their changes.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use dyno_record::{
    HistoryLine, Note, RunDir, append_history, append_note, find_runs, read_history, read_notes,
};
use dyno_report::{History, HistoryFilter, build_stored, history_line};

use crate::args::{
    HistoryAddArgs, HistoryArgs, HistoryCommand, HistoryExport, HistoryFormat, HistoryNoteArgs,
    HistoryShowArgs,
};
use crate::exit::Exit;
use crate::{runs, terminal};

/// The notes that are read when none are named.
const NOTES: &str = "notes.toml";

pub fn run(args: &HistoryArgs) -> anyhow::Result<Exit> {
    match &args.command {
        None => show(&args.show),
        Some(HistoryCommand::Add(args)) => add(args),
        Some(HistoryCommand::Note(args)) => note(args),
    }
}

fn add(args: &HistoryAddArgs) -> anyhow::Result<Exit> {
    let (dir, stored) = runs::open_at(&args.run)?;
    let line = history_line(&build_stored(&stored), &name(&dir)?, &args.metric);
    let (run, to) = (&line.run, args.to.display());
    let text = if append_history(&args.to, &line)? {
        format!("{to}: added {run} with {} figures", line.figures.len())
    } else {
        format!("{to}: has {run} already")
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

fn note(args: &HistoryNoteArgs) -> anyhow::Result<Exit> {
    append_note(
        &args.to,
        Note {
            date: args.date.clone(),
            text: args.text.clone(),
            case: args.case.clone(),
            machine: args.machine.clone(),
        },
    )?;
    Ok(Exit::Done)
}

fn show(args: &HistoryShowArgs) -> anyhow::Result<Exit> {
    let mut lines = Vec::new();
    for from in &args.from {
        lines.extend(lines_of(from, &args.metric)?);
    }
    let filter = HistoryFilter {
        cases: args.case.clone(),
        metrics: args.metric.clone(),
        systems: args.system.clone(),
        machine: args.machine.clone(),
    };
    let history = History::from_lines(lines, &filter, notes(args)?);
    ensure!(
        !history.series.is_empty(),
        "no run has such a figure: nothing to show"
    );
    let text = match (args.export, args.json, args.format) {
        (Some(HistoryExport::Bencher), ..) => history.to_bencher().map_err(anyhow::Error::msg)?,
        (Some(HistoryExport::Otava), ..) => {
            let table = history.to_otava().map_err(anyhow::Error::msg)?;
            // A program that reads Otava's table needs the same columns in every row.
            for run in &table.left_out {
                eprintln!("dyno: {run} lacks a figure of the newest run, and is left out");
            }
            table.csv
        }
        (None, true, _) | (None, _, HistoryFormat::Json) => serde_json::to_string_pretty(&history)?,
        (None, _, HistoryFormat::Html) => history.to_html()?,
        (None, _, HistoryFormat::Md) => terminal::markdown(history.to_markdown()),
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// The lines of a history file, or those that the runs below a directory would add to one. A run
/// that cannot be read is named, and the others are shown.
fn lines_of(from: &Path, metrics: &[String]) -> anyhow::Result<Vec<HistoryLine>> {
    if from.is_file() {
        return Ok(read_history(from)?);
    }
    runs::existing(from)?;
    let mut lines = Vec::new();
    for dir in find_runs(from)? {
        match RunDir::open(&dir) {
            Ok(stored) => lines.push(history_line(&build_stored(&stored), &name(&dir)?, metrics)),
            // One damaged run must not hide the history of all others.
            Err(error) => eprintln!("dyno: {error}"),
        }
    }
    Ok(lines)
}

fn name(dir: &Path) -> anyhow::Result<String> {
    let whole = dir
        .canonicalize()
        .with_context(|| format!("{}", dir.display()))?;
    let name = whole.file_name().unwrap_or(whole.as_os_str());
    Ok(name.to_string_lossy().into_owned())
}

fn notes(args: &HistoryShowArgs) -> anyhow::Result<Vec<Note>> {
    let beside = |from: &PathBuf| {
        if from.is_dir() {
            from.join(NOTES)
        } else {
            from.with_file_name(NOTES)
        }
    };
    let path = match &args.notes {
        Some(path) => path.clone(),
        None => match args.from.first().map(beside) {
            Some(path) if path.exists() => path,
            _ => return Ok(Vec::new()),
        },
    };
    Ok(read_notes(&path)?)
}

//! `dyno tpch gen`: tables into files.

use std::process::Command;

use anyhow::{Context, bail};
use dyno_report::quantity;
use dyno_suite::Stop;
use dyno_tpch::{Generator, Scale, Table};
use dyno_tpch_files::{
    Destination, Error, FileReport, Job, Layout, Progress, Report, SinkKind, Split, run as own,
    run_in,
};
use serde_json::{Value, json};

use crate::args::{TpchGenArgs, TpchWhatArgs};
use crate::exit::Exit;
use crate::progress::WorkBar;
use crate::{sql, terminal};

pub fn run(args: &TpchGenArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let mut job = job(&args.what)?;
    job.overwrite = args.overwrite;
    job.iceberg = args.catalog.is_some();
    job.split = match (args.part, args.parts) {
        (Some(part), _) => part,
        (None, Some(parts)) => Split::Parts(parts),
        (None, None) => Split::Whole,
    };
    let to_stdout = job.sink == SinkKind::Stdout;
    if to_stdout && args.json {
        bail!("--json and --sink stdout would mix on standard output; choose one");
    }
    let report = watched(&job, stop)?;
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&as_json(&report))?)?;
    } else if to_stdout {
        // Standard output has the bytes of the file.
        eprintln!("{}", summary(&report));
    } else {
        terminal::print(&as_text(&report))?;
    }
    Ok(Exit::Done)
}

/// The order that the arguments give, for whole tables.
pub fn job(args: &TpchWhatArgs) -> anyhow::Result<Job> {
    let scale = Scale::new(args.sf)?;
    let named = !matches!(args.sink, SinkKind::Null | SinkKind::Stdout);
    let place = match &args.out {
        Some(out) if named => out.parse::<Destination>()?,
        Some(_) => bail!("--out with --sink {}: nothing is written there", args.sink),
        None if named => bail!("--out DIR says where the files go; --sink null writes none"),
        None => Destination::Nowhere,
    };
    let mut job = Job::new(scale, args.format, place);
    if !args.tables.is_empty() {
        job.tables.clone_from(&args.tables);
    }
    job.layout = layout(args);
    job.mode = args.mode;
    if let Some(threads) = args.threads {
        job.jobs = usize::try_from(threads).context("--threads")?;
    }
    job.sink = args.sink;
    job.memory_bytes = args.memory;
    Ok(job)
}

fn layout(args: &TpchWhatArgs) -> Layout {
    let mut layout = Layout::new(args.format);
    if let Some(compression) = args.compression {
        layout.compression = compression;
    }
    layout.columns.clone_from(&args.columns);
    layout.page_version = args.page_version;
    layout.group_rows = args.group_rows;
    layout.group_bytes = args.group_bytes;
    layout
}

/// Writes in this process, or in that of the SQL engine if the mode needs Arrow, which only that
/// program has.
fn write(job: &Job, elsewhere: Option<Command>, progress: &Progress) -> Result<Report, Error> {
    match elsewhere {
        Some(program) => run_in(program, job, progress),
        None => own(job, progress),
    }
}

/// Writes with a bar over the rows.
fn watched(job: &Job, stop: &Stop) -> anyhow::Result<Report> {
    let elsewhere = if job.is_of_another_program() {
        // A mistake in the job is reported before a missing SQL engine, because building the engine
        // would not mend it.
        job.check()?;
        let mut program = sql::command()?;
        program.args(["tpch", "write"]);
        Some(program)
    } else {
        None
    };
    let progress = Progress::default();
    let bar = WorkBar::new(expected_rows(job), "rows");
    let written = bar.follow(
        || write(job, elsewhere, &progress),
        |bar| {
            bar.at(progress.rows());
            bar.say(&quantity(progress.bytes() as f64, "B"));
            // The writer notices the request by itself, and its progress is shown until it has
            // ended.
            if stop.asked() {
                progress.stop();
            }
        },
    )?;
    Ok(written?)
}

/// The length of the bar. It is exact except for `lineitem`, whose rows would take time to count.
fn expected_rows(job: &Job) -> u64 {
    let generator = Generator::new(job.scale);
    let rows = |&table: &Table| match table {
        Table::Lineitem => job.scale.units(table) * 4,
        _ => generator.rows(table),
    };
    let all: u64 = job.tables.iter().map(rows).sum();
    match job.split {
        Split::Part { parts, .. } => all / parts,
        Split::Whole | Split::Parts(_) => all,
    }
}

fn as_text(report: &Report) -> String {
    let mut table = terminal::table(&["file", "rows", "bytes", "seconds", "how"]);
    for file in &report.files {
        table.add_row([
            file.name.display().to_string(),
            file.rows.to_string(),
            file.bytes.to_string(),
            format!("{:.2}", file.seconds),
            file.sink.clone(),
        ]);
    }
    format!("{table}\n{}", summary(report))
}

fn summary(report: &Report) -> String {
    let (rows, bytes) = (report.rows() as f64, report.bytes() as f64);
    let kept = report.files.iter().filter(|file| file.kept).count();
    let kept = match kept {
        0 => String::new(),
        1 => "; 1 file was there already and is kept".to_string(),
        n => format!("; {n} files were there already and are kept"),
    };
    format!(
        "{} rows, {} in {:.2} s: {}, {}{kept}",
        report.rows(),
        quantity(bytes, "B"),
        report.seconds,
        quantity(rows / report.seconds, "rows/s"),
        quantity(bytes / report.seconds, "B/s"),
    )
}

fn as_json(report: &Report) -> Value {
    let file = |file: &FileReport| {
        json!({
            "table": file.table.name(),
            "file": file.name,
            "rows": file.rows,
            "bytes": file.bytes,
            "seconds": file.seconds,
            "sink": file.sink,
            "kept": file.kept,
        })
    };
    json!({
        "rows": report.rows(),
        "bytes": report.bytes(),
        "seconds": report.seconds,
        "pool_s": report.pool_seconds,
        "rows_per_s": report.rows() as f64 / report.seconds,
        "files": report.files.iter().map(file).collect::<Vec<_>>(),
    })
}

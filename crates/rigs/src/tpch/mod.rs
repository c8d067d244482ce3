//! The TPC-H engine's workload: tables written as files, timed from the call to the last durable
//! file.

mod ground;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread;

use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};
use dyno_tpch::{Scale, Table};
use dyno_tpch_files::{Compression, Format, Job, Mode, Progress, Report, SinkKind, run, run_in};

use crate::sql::{sql_engine, tables_checksum};
use crate::{Params, RigError, used};
use ground::Ground;

/// Above this share of the threads' time the processor is the bottleneck.
const BUSY: f64 = 0.85;

/// `tpch-write`: `tables` at scale factor `sf` as `format`, by `jobs` threads, into `place`. The
/// answer is read back from the files afterwards, by readers that are not ours, in `dyno-sql`;
/// without files it is the count. `dyno-sql` also writes what the mode `baseline` makes with Arrow.
pub(crate) fn write(params: &mut Params<'_>, request: &Request) -> Result<Reply, RigError> {
    let ground = Ground::new(params.text("place")?, &request.scratch)
        .map_err(|reason| params.wrong("place", reason))?;
    let lengths = match params.text("text")? {
        "bytes" => false,
        "lengths" => true,
        other => {
            return Err(params.wrong("text", format!("`{other}` is neither bytes nor lengths")));
        }
    };
    // The parameter is for peers that only copy rows, and names their files.
    params.ignore("from");
    let each_table = params.count_or("each-table", 0)? > 0;
    let job = job(params, &ground)?;
    let elsewhere = job.is_of_another_program();
    let cpu_at_s = used::cpu_with_children_s();
    let report = if elsewhere {
        let mut program = sql_engine()?;
        program.args(["tpch", "write"]);
        run_in(program, &job, &Progress::default())?
    } else {
        run(&job, &Progress::default())?
    };
    let cpu_s = used::cpu_with_children_s() - cpu_at_s;
    // No child has run before, so the largest child is the one that wrote.
    let peak_bytes = if elsewhere {
        used::children_peak_bytes()
    } else {
        used::peak_bytes()
    };
    let answer = match ground.folder() {
        Some(folder) => tables_checksum(folder, &job.tables, job.layout.format.name(), lengths)?,
        None => Answer {
            count: report.rows(),
            checksum: "-".to_string(),
        },
    };
    let mut metrics = metrics(&job, &report, cpu_s);
    if each_table {
        metrics.extend(sizes(&report));
    }
    metrics.extend(peak_bytes.map(|bytes| ("peak-rss".to_string(), bytes)));
    Ok(Reply {
        answer: Some(answer),
        metrics,
        facts: facts(&job, &report, cpu_s),
        ..Reply::default()
    })
}

fn job(params: &mut Params<'_>, ground: &Ground) -> Result<Job, RigError> {
    let wrong = |name: &str, reason: String| RigError::Param {
        name: name.to_string(),
        reason,
    };
    let scale = Scale::new(params.number("sf")?).map_err(|e| wrong("sf", e.to_string()))?;
    let format: Format = params.text("format")?.parse()?;
    let mut job = Job::new(scale, format, ground.place());
    let compression: Compression = params.text("compression")?.parse()?;
    job.layout.compression = compression;
    let mode: Mode = params.text("mode")?.parse()?;
    job.mode = mode;
    job.jobs = match params.count_or_all("jobs")? {
        Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
        None => thread::available_parallelism().map_or(1, NonZero::get),
    };
    if let Some(names) = params.names_or_all("tables")? {
        let tables: Result<Vec<Table>, _> = names.iter().map(|name| name.parse()).collect();
        job.tables = tables.map_err(|e: dyno_tpch::Error| wrong("tables", e.to_string()))?;
    }
    let sink = params.text("sink")?.parse::<SinkKind>();
    let sink = sink.map_err(|e| wrong("sink", e.to_string()))?;
    job.sink = if ground.folder().is_some() {
        sink
    } else {
        SinkKind::Null
    };
    Ok(job)
}

fn metrics(job: &Job, report: &Report, cpu_s: f64) -> BTreeMap<String, f64> {
    let (rows, bytes) = (report.rows() as f64, report.bytes() as f64);
    let mut metrics = BTreeMap::from([
        ("throughput".to_string(), rows / report.seconds),
        ("time".to_string(), report.seconds),
        ("cpu".to_string(), cpu_s),
        ("cpu-rows-per-s".to_string(), rows / cpu_s),
        ("bytes".to_string(), bytes),
        ("io-rate".to_string(), bytes / report.seconds),
        ("pool-s".to_string(), report.pool_seconds),
    ]);
    // Threads move between files, so a table's own time is known only with one thread.
    let tables = if job.jobs == 1 { &Table::ALL[..] } else { &[] };
    for &table in tables {
        let files = report.files.iter().filter(|file| file.table == table);
        let (rows, seconds) = files.fold((0, 0.0), |(rows, seconds), file| {
            (rows + file.rows, seconds + file.seconds)
        });
        if rows > 0 && seconds > 0.0 {
            metrics.insert(format!("{table}-per-s"), rows as f64 / seconds);
        }
    }
    metrics
}

/// Rows and bytes of each table, which only the case that is about them records: with eight tables
/// they would be most of every other record.
fn sizes(report: &Report) -> BTreeMap<String, f64> {
    let mut sizes = BTreeMap::new();
    for file in &report.files {
        *sizes.entry(format!("{}-rows", file.table)).or_default() += file.rows as f64;
        *sizes.entry(format!("{}-bytes", file.table)).or_default() += file.bytes as f64;
    }
    sizes
}

fn facts(job: &Job, report: &Report, cpu_s: f64) -> BTreeMap<String, String> {
    let threads = job.jobs as f64;
    let busy = cpu_s / report.seconds;
    // The process cannot tell what it waited for: the sink, the thread pool's start, or other
    // programs.
    let bottleneck = if busy > BUSY * threads {
        "processor"
    } else {
        "waiting, or one stage of several"
    };
    let mut facts = BTreeMap::from([
        (
            "bottleneck".to_string(),
            format!("{bottleneck} ({busy:.1} of {} threads busy)", job.jobs),
        ),
        (
            "detail".to_string(),
            format!(
                "text pool {:.2} s of {:.2} s",
                report.pool_seconds, report.seconds
            ),
        ),
    ]);
    if let Some(largest) = report.files.iter().max_by_key(|file| file.bytes) {
        facts.insert("sink".to_string(), largest.sink.clone());
    }
    facts
}

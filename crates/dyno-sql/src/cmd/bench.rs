//! `dyno-sql bench`: runs one query again and again inside one process and prints the times.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use datafusion::arrow::json::{WriterBuilder, writer::JsonArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use serde::Serialize;

use crate::args::BenchArgs;
use crate::{session, statement};

/// Rows of an answer that the output repeats, so that a mistaken `SELECT *` stays readable.
const ROWS_MAX: usize = 1000;

#[derive(Serialize)]
struct Answer {
    /// Rows that the scans handed on or aggregated in one run.
    rows_scanned: u64,
    /// Bytes of the files' column chunks that the scans read in one run.
    bytes_scanned: u64,
    /// Seconds of each run, from the text of the query to the last row of its answer.
    windows: Vec<f64>,
    threads: usize,
    /// Rows of the answer, which may be more than `rows` repeats.
    row_count: usize,
    /// The answer itself, at most its first thousand rows.
    rows: serde_json::Value,
    /// The operator that read the table.
    operator: String,
}

/// Runs the query `repeats` times and prints one JSON object.
///
/// # Errors
/// The table cannot be opened, the query fails, or two runs answer with another number of rows.
pub async fn run(args: BenchArgs, out: &mut dyn Write) -> Result<()> {
    let limits = args.limits.limits();
    let context = session::open(&args.table, limits)?;
    let mut windows = Vec::with_capacity(args.repeats);
    let mut last: Option<(Arc<dyn ExecutionPlan>, Vec<RecordBatch>)> = None;
    // The session is opened once and outside the clock, because a program that uses the library
    // opens its table once. Each run parses and plans anew, which a query of milliseconds feels.
    for _ in 0..args.repeats {
        let start = Instant::now();
        let ran = run_once(&context, &args.sql).await?;
        windows.push(start.elapsed().as_secs_f64());
        // A time for a wrong answer is worthless. The caller sees the rows of the last run alone,
        // so those of the others are at least counted.
        if let Some((_, before)) = &last {
            ensure!(
                row_count(before) == row_count(&ran.1),
                "one run answered with {} rows, the next with {}",
                row_count(before),
                row_count(&ran.1)
            );
        }
        last = Some(ran);
    }
    let (plan, batches) = last.unzip();
    let scanned = plan.map(|plan| scanned(&plan)).unwrap_or_default();
    let batches = batches.unwrap_or_default();
    let answer = Answer {
        rows_scanned: scanned.rows,
        bytes_scanned: scanned.bytes,
        windows,
        threads: limits.threads,
        row_count: row_count(&batches),
        rows: rows(&batches)?,
        operator: scanned.operator,
    };
    writeln!(out, "{}", serde_json::to_string(&answer)?)?;
    Ok(())
}

async fn run_once(
    context: &SessionContext,
    sql: &str,
) -> Result<(Arc<dyn ExecutionPlan>, Vec<RecordBatch>)> {
    let mut last = None;
    for parsed in statement::parse(sql)? {
        let frame = statement::plan(context, parsed, sql).await?;
        let task = Arc::new(frame.task_ctx());
        let explained = |error| statement::explain(&error, sql);
        let plan = frame.create_physical_plan().await.map_err(explained)?;
        let batches = collect(Arc::clone(&plan), task).await.map_err(explained)?;
        last = Some((plan, batches));
    }
    last.ok_or_else(|| anyhow::anyhow!("there is no statement in the query"))
}

/// What the leaves of a plan read.
#[derive(Default)]
struct Scanned {
    rows: u64,
    bytes: u64,
    /// The name of the first leaf.
    operator: String,
}

/// What the leaves of a plan that has run have read.
fn scanned(plan: &Arc<dyn ExecutionPlan>) -> Scanned {
    let children = plan.children();
    if children.is_empty() {
        let metrics = plan.metrics().unwrap_or_default();
        let count = |name| metrics.sum_by_name(name).map(|count| count.as_usize());
        // Our operators aggregate, so their output says nothing of what they read; they count it in
        // a metric of their own. A scan of the library hands its rows on.
        let rows = count("rows_scanned").or_else(|| metrics.output_rows());
        return Scanned {
            rows: rows.unwrap_or(0) as u64,
            bytes: count("bytes_scanned").unwrap_or(0) as u64,
            operator: plan.name().to_owned(),
        };
    }
    let mut sum = Scanned::default();
    for child in children {
        let of_child = scanned(child);
        sum.rows += of_child.rows;
        sum.bytes += of_child.bytes;
        if sum.operator.is_empty() {
            sum.operator = of_child.operator;
        }
    }
    sum
}

fn row_count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn rows(batches: &[RecordBatch]) -> Result<serde_json::Value> {
    let mut writer = WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, JsonArray>(Vec::new());
    let mut left = ROWS_MAX;
    for batch in batches {
        let batch = batch.slice(0, batch.num_rows().min(left));
        left -= batch.num_rows();
        writer.write(&batch)?;
    }
    writer.finish()?;
    let text = writer.into_inner();
    Ok(if text.is_empty() {
        serde_json::json!([])
    } else {
        serde_json::from_slice(&text)?
    })
}

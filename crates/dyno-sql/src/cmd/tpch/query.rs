//! `dyno-sql tpch query`: runs queries of the benchmark and checks their answers.

use std::io::{BufWriter, Write};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use dyno_tpch::Scale;
use dyno_tpch::queries::Query;
use serde::Serialize;

use super::Verdict;
use crate::args::tpch::TpchQueryArgs;
use crate::output::{Format, ResultWriter};
use crate::statement;
use crate::tpch::open::{Tables, open};
use crate::tpch::text;

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Report {
    scale_factor: f64,
    threads: usize,
    queries: Vec<Ran>,
}

/// One query and what its runs came to.
#[derive(Serialize)]
struct Ran {
    /// Name of the query, `q01` to `q22`.
    query: String,
    /// Of each run, from the text of the query to the last row of its answer.
    seconds: Vec<f64>,
    /// Rows of the last run's answer.
    rows: usize,
    /// Whether the answer is the published one, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    correct: Option<bool>,
    /// Where the answer first differs from the published one.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
}

/// Runs the queries one after the other; prints their results, or how they compare with the
/// answers.
///
/// # Errors
/// The tables cannot be opened or lack one that is needed; a query fails; Ctrl-C; answers are asked
/// for at another scale factor than 1.
pub async fn run(args: TpchQueryArgs, out: &mut dyn Write) -> Result<Verdict> {
    let queries = chosen(&args)?;
    let limits = args.source.limits.limits();
    let tables = open(&args.directory, args.source.files, limits).await?;
    // Refused before the first query runs: an hour later would be too late to learn that a table is
    // missing.
    check_present(&args, &tables, &queries)?;
    let scale = scale(&args, &tables).await?;
    let mut out = BufWriter::new(out);
    let mut report = Report {
        scale_factor: scale.factor(),
        threads: limits.threads,
        queries: Vec::new(),
    };
    for query in queries {
        let ran = tokio::select! {
            ran = run_one(&args, &tables, query, &scale, &mut out) => ran?,
            // Dropping the query ends its threads and removes what it spilled to disk.
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        };
        report.queries.push(ran);
    }
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    }
    out.flush()?;
    let wrong = report.queries.iter().any(|ran| ran.correct == Some(false));
    Ok(if wrong { Verdict::Wrong } else { Verdict::Good })
}

fn chosen(args: &TpchQueryArgs) -> Result<Vec<&'static Query>> {
    if args.queries.is_empty() {
        if args.format != Format::Table && !args.check && !args.json {
            bail!("--format csv and json print one result: name the query with --q");
        }
        return Ok(Query::all().iter().collect());
    }
    if args.queries.len() > 1 && args.format != Format::Table {
        bail!("--format csv and json print one result: name one query with --q");
    }
    Ok(args
        .queries
        .iter()
        .filter_map(|&number| Query::numbered(number))
        .collect())
}

fn check_present(args: &TpchQueryArgs, tables: &Tables, queries: &[&Query]) -> Result<()> {
    for query in queries {
        for table in query.tables() {
            if !tables.files.contains_key(&table) {
                bail!(
                    "{} needs the table {table}, which {} lacks",
                    query.name(),
                    args.directory.display()
                );
            }
        }
    }
    Ok(())
}

/// Answers are known for scale factor 1, and the text of query 11 depends on it.
async fn scale(args: &TpchQueryArgs, tables: &Tables) -> Result<Scale> {
    let scale = match args.source.sf {
        Some(scale) => scale,
        None => tables.scale().await?,
    };
    if args.check && scale.factor() != 1.0 {
        bail!(
            "--check: there is no published answer for scale factor {}, only for 1",
            scale.factor()
        );
    }
    Ok(scale)
}

async fn run_one(
    args: &TpchQueryArgs,
    tables: &Tables,
    query: &Query,
    scale: &Scale,
    out: &mut dyn Write,
) -> Result<Ran> {
    let sql = query.sql(scale);
    let mut seconds = Vec::with_capacity(args.repeats);
    let mut result = None;
    for _ in 0..args.repeats {
        let start = Instant::now();
        let answered = answer(tables, &sql).await;
        result = Some(answered.with_context(|| query.name())?);
        seconds.push(start.elapsed().as_secs_f64());
    }
    let (schema, batches) = result.context("no run was asked for")?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let difference = if args.check {
        query.answer().difference(&text::rows(&batches)?)
    } else {
        None
    };
    let ran = Ran {
        query: query.name(),
        seconds,
        rows,
        correct: args.check.then_some(difference.is_none()),
        difference: difference.map(|difference| difference.to_string()),
    };
    if !args.json {
        print(args, &ran, schema, batches, out)?;
    }
    Ok(ran)
}

async fn answer(tables: &Tables, sql: &str) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let explained = |error| statement::explain(&error, sql);
    let frame = tables.sql(sql).await.map_err(explained)?;
    let schema = frame.schema().inner().clone();
    let batches = frame.collect().await.map_err(explained)?;
    Ok((schema, batches))
}

fn print(
    args: &TpchQueryArgs,
    ran: &Ran,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    out: &mut dyn Write,
) -> Result<()> {
    let rows = if ran.rows == 1 { "row " } else { "rows" };
    let line = format!(
        "{} {:9.3} s {:6} {rows}",
        ran.query,
        median(&ran.seconds),
        ran.rows
    );
    match (&ran.correct, &ran.difference) {
        (None, _) => {
            if args.format == Format::Table {
                writeln!(out, "{}", line.trim_end())?;
            }
            let mut writer = ResultWriter::new(args.format, schema, &mut *out)?;
            for batch in batches {
                writer.write(batch)?;
            }
            writer.finish()?;
        }
        (Some(_), None) => writeln!(out, "{line}  ok")?,
        (Some(_), Some(difference)) => writeln!(out, "{line}  differs: {difference}")?,
    }
    // Flushed, so that each line is seen while the next query runs.
    out.flush()?;
    Ok(())
}

fn median(seconds: &[f64]) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_several_runs() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[3.0, 1.0]), 2.0);
    }
}

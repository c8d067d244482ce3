//! `dyno ingest bench`: one load, through the same suite, record and report as everything else.

use dyno_suite::Stop;

use crate::args::{IngestBenchArgs, LoadSource};
use crate::cmd::bench;
use crate::exit::Exit;

pub fn run(args: &IngestBenchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    bench::run("ingest", suite(args), &args.bench, stop)
}

/// The suite of one case.
fn suite(args: &IngestBenchArgs) -> String {
    let IngestBenchArgs {
        rows,
        months,
        threads,
        ..
    } = *args;
    let repeats = args.bench.repeats;
    let source = args.source.name();
    let form = if args.source == LoadSource::Csv {
        "plain"
    } else {
        "gzip"
    };
    let (extra, files) = match args.source {
        LoadSource::Gz => ("", "${data.archive}/*.csv.gz"),
        LoadSource::Csv => ("", "${data.archive}/*.csv"),
        LoadSource::Parquet => (
            r#"
[[data]]
name = "parquet"
workload = "ingest-parquet"
params = { files = "${data.archive}/*.csv.gz", workers = 2 }
time_limit_s = 1800
estimate = { units = "${size.rows}", units_per_s = { other = 1e6 }, disk_bytes_per_unit = 20 }
"#,
            "${data.parquet}/*.parquet",
        ),
    };
    let size = format!("rows = {rows}\nbudget_s = 3600\n");
    format!(
        r#"title = "Load {rows} spots from {source}"
purpose = "One load, as `dyno ingest bench` was asked for."
order_seed = 1

[sizes.tiny]
{size}
[sizes.quick]
{size}
[sizes.full]
{size}
[[data]]
name = "archive"
workload = "ingest-gen"
params = {{ rows = "${{size.rows}}", months = {months}, seed = 1, form = "{form}" }}
time_limit_s = 1800
estimate = {{ units = "${{size.rows}}", units_per_s = {{ other = 5e5 }}, disk_bytes_per_unit = 84 }}
{extra}
[[case]]
name = "load-{source}-{threads}"
title = "Load from {source}, {threads} threads"
workload = "ingest-load"
params = {{ source = "{source}", files = "{files}", workers = {threads} }}
peers = ["duckdb", "chdb"]
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = {repeats}
control = true
time_limit_s = 900
expected_count = "${{size.rows}}"
estimate = {{ units_per_s = {{ dyno = 3e6, other = 7e5 }}, startup_s = 1.5, disk_bytes_per_unit = 40, memory_bytes = 2e9 }}
analysis = "Wall time from opening the inputs to the committed table, inputs in the page cache."
"#
    )
}

//! `dyno ingest bench`: one load, through the same suite, record and report as everything else.

use dyno_report::counted;
use dyno_suite::Stop;
use serde_json::{Value, json};

use crate::args::{IngestBenchArgs, LoadSource};
use crate::cmd::bench;
use crate::exit::Exit;

pub fn run(args: &IngestBenchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    bench::run("ingest", suite(args), &args.bench, stop)
}

/// The suite of one case.
fn suite(args: &IngestBenchArgs) -> Value {
    let (rows, threads, source) = (args.rows, args.threads, args.source.name());
    let (form, files) = match args.source {
        LoadSource::Gz => ("gzip", "${data.archive}/*.csv.gz"),
        LoadSource::Csv => ("plain", "${data.archive}/*.csv"),
        LoadSource::Parquet => ("gzip", "${data.parquet}/*.parquet"),
    };
    let mut data = vec![json!({
        "name": "archive",
        "workload": "ingest-gen",
        "params": { "rows": "${size.rows}", "months": args.months, "seed": 1, "form": form },
        "time_limit_s": 1800,
        "estimate": {
            "units": "${size.rows}",
            "units_per_s": { "other": 5e5 },
            "disk_bytes_per_unit": 84,
        },
    })];
    if args.source == LoadSource::Parquet {
        data.push(json!({
            "name": "parquet",
            "workload": "ingest-parquet",
            "params": { "files": "${data.archive}/*.csv.gz", "workers": 2 },
            "time_limit_s": 1800,
            "estimate": {
                "units": "${size.rows}",
                "units_per_s": { "other": 1e6 },
                "disk_bytes_per_unit": 20,
            },
        }));
    }
    json!({
        "title": format!("Load {rows} spots from {source}"),
        "purpose": "One load with the parameters of `dyno ingest bench`.",
        "order_seed": 1,
        "sizes": bench::sizes(json!({ "rows": rows, "budget_s": 3600 })),
        "data": data,
        "case": [{
            "name": format!("load-{source}-{threads}"),
            "title": format!("Load from {source}, {}", counted(threads as u64, "thread")),
            "workload": "ingest-load",
            "params": { "source": source, "files": files, "workers": threads },
            "peers": ["duckdb", "chdb"],
            "metric": "throughput",
            "unit": "rows/s",
            "better": "higher",
            "repeats": args.bench.repeats,
            "control": true,
            "time_limit_s": 900,
            "expected_count": "${size.rows}",
            "estimate": {
                "units_per_s": { "dyno": 3e6, "other": 7e5 },
                "startup_s": 1.5,
                "disk_bytes_per_unit": 40,
                "memory_bytes": 2e9,
            },
            "analysis": "Wall time from opening the inputs to the committed table, inputs in the \
                page cache.",
        }],
    })
}

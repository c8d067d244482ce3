//! `dyno tpch bench`: one job, through the same suite, record and report as everything else.

use anyhow::bail;
use dyno_suite::Stop;
use dyno_tpch::{Generator, Scale, Table};
use dyno_tpch_files::{Compression, Format, Mode, SinkKind};
use serde_json::{Value, json};

use crate::args::TpchBenchArgs;
use crate::cmd::bench;
use crate::exit::Exit;

pub fn run(args: &TpchBenchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    bench::run("tpch", suite(args)?, &args.bench, stop)
}

/// The suite of one case.
fn suite(args: &TpchBenchArgs) -> anyhow::Result<Value> {
    let TpchBenchArgs {
        sf,
        format,
        mode,
        sink,
        ..
    } = args;
    let scale = Scale::new(*sf)?;
    let place = match sink {
        SinkKind::Null => "null",
        SinkKind::Auto => "memory",
        SinkKind::Stdout => bail!("--sink stdout: standard output is the report's; use null"),
        _ => "disk",
    };
    let text = matches!(format, Format::Csv | Format::Tbl);
    let compression = args.compression.unwrap_or(if text {
        Compression::None
    } else {
        Compression::Snappy
    });
    let threads = args.threads.map_or(json!("all"), |threads| json!(threads));
    let (tables, rows) = tables(args, scale);
    let peers = peers(args, place, compression);
    // DuckDB draws other letters for comments and addresses, of the same lengths.
    let text = if peers.contains(&"duckdb-tpch") {
        "lengths"
    } else {
        "bytes"
    };
    Ok(json!({
        "title": format!("TPC-H at scale factor {sf} as {format}"),
        "purpose": "One job with the parameters of `dyno tpch bench`.",
        "order_seed": 1,
        "sizes": bench::sizes(json!({ "rows": rows, "budget_s": 7200 })),
        "case": [{
            "name": format!("write-{format}"),
            "title": format!("{format}, {compression}, {mode}, sink {sink}"),
            "workload": "tpch-write",
            "params": {
                "sf": sf,
                "format": format.to_string(),
                "mode": mode.to_string(),
                "compression": compression.to_string(),
                "jobs": threads,
                "sink": sink.to_string(),
                "tables": tables,
                "place": place,
                "text": text,
            },
            "peers": peers,
            "metric": "throughput",
            "unit": "rows/s",
            "better": "higher",
            "repeats": args.bench.repeats,
            "control": true,
            "time_limit_s": 3600,
            "expected_count": "${size.rows}",
            "estimate": {
                "units_per_s": { "dyno": 4e6, "other": 5e5 },
                "startup_s": 1.5,
                "disk_bytes_per_unit": 130,
                "memory_bytes": 1.5e9,
            },
            "analysis": "Wall time from the order to the last file under its final name, with the \
                making of the text pool in it.",
        }],
    }))
}

/// The tables as the suite names them, and their rows.
fn tables(args: &TpchBenchArgs, scale: Scale) -> (Value, u64) {
    let generator = Generator::new(scale);
    let (names, tables) = match &args.tables[..] {
        [] => (json!("all"), &Table::ALL[..]),
        some => {
            let names: Vec<String> = some.iter().map(Table::to_string).collect();
            (json!(names), some)
        }
    };
    let rows = tables.iter().map(|table| generator.rows(*table)).sum();
    (names, rows)
}

/// The peers that can do the job.
fn peers(args: &TpchBenchArgs, place: &str, compression: Compression) -> &'static [&'static str] {
    let codec = matches!(
        compression,
        Compression::None | Compression::Snappy | Compression::Zstd(1)
    );
    let ours_alone = args.mode != Mode::TrueZeroCopy || !codec;
    match (args.format, place) {
        _ if ours_alone => &[],
        (Format::Parquet, "null") => &[],
        (Format::Parquet | Format::Csv, "memory" | "disk") => &["tpchgen-cli", "duckdb-tpch"],
        (Format::Csv | Format::Tbl, _) => &["tpchgen-cli"],
        _ => &[],
    }
}

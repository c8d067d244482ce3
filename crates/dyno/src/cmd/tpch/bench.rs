//! `dyno tpch bench`: one job, through the same suite, record and report as everything else.

use anyhow::bail;
use dyno_suite::Stop;
use dyno_tpch::{Generator, Scale, Table};
use dyno_tpch_files::{Compression, Format, Mode, SinkKind};

use crate::args::TpchBenchArgs;
use crate::cmd::bench;
use crate::exit::Exit;

pub fn run(args: &TpchBenchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    bench::run("tpch", suite(args)?, &args.bench, stop)
}

/// The suite of one case.
fn suite(args: &TpchBenchArgs) -> anyhow::Result<String> {
    let TpchBenchArgs {
        sf,
        format,
        mode,
        sink,
        ..
    } = args;
    let repeats = args.bench.repeats;
    let scale = Scale::new(*sf)?;
    let place = match sink {
        SinkKind::Null => "null",
        SinkKind::Auto => "memory",
        SinkKind::Stdout => bail!("--sink stdout: standard output is the report's; use null"),
        _ => "disk",
    };
    let text = matches!(format, Format::Csv | Format::Tbl);
    let compression = args.compression.unwrap_or(match text {
        true => Compression::None,
        false => Compression::Snappy,
    });
    let threads = match args.threads {
        Some(threads) => threads.to_string(),
        None => "\"all\"".to_string(),
    };
    let (tables, rows) = tables(args, scale);
    let peers = peers(args, place, compression);
    let lengths = peers.contains("duckdb");
    let texts = if lengths { "lengths" } else { "bytes" };
    let size = format!("rows = {rows}\nbudget_s = 7200\n");
    Ok(format!(
        r#"title = "TPC-H at scale factor {sf} as {format}"
purpose = "One job, as `dyno tpch bench` was asked for."
order_seed = 1

[sizes.tiny]
{size}
[sizes.quick]
{size}
[sizes.full]
{size}
[[case]]
name = "write-{format}"
title = "{format}, {compression}, {mode}, sink {sink}"
workload = "tpch-write"
params = {{ sf = {sf}, format = "{format}", mode = "{mode}", compression = "{compression}", jobs = {threads}, sink = "{sink}", tables = {tables}, place = "{place}", text = "{texts}" }}
peers = [{peers}]
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = {repeats}
control = true
time_limit_s = 3600
expected_count = "${{size.rows}}"
estimate = {{ units_per_s = {{ dyno = 4e6, other = 5e5 }}, startup_s = 1.5, disk_bytes_per_unit = 130, memory_bytes = 1.5e9 }}
analysis = "Wall time from the order to the last file under its final name, with the making of the text pool in it."
"#
    ))
}

/// The tables as the suite writes them, and their rows.
fn tables(args: &TpchBenchArgs, scale: Scale) -> (String, u64) {
    let generator = Generator::new(scale);
    let rows_of = |table: Table| generator.rows(table);
    if args.tables.is_empty() {
        return (
            "\"all\"".to_string(),
            Table::ALL.into_iter().map(rows_of).sum(),
        );
    }
    let names: Vec<String> = args.tables.iter().map(|t| format!("\"{t}\"")).collect();
    let rows = args.tables.iter().copied().map(rows_of).sum();
    (format!("[{}]", names.join(", ")), rows)
}

/// Those that can do the job, quoted.
fn peers(args: &TpchBenchArgs, place: &str, compression: Compression) -> String {
    let codec = matches!(
        compression,
        Compression::None | Compression::Snappy | Compression::Zstd(1)
    );
    let ours_alone = args.mode != Mode::TrueZeroCopy || !codec;
    let peers: &[&str] = match (args.format, place) {
        _ if ours_alone => &[],
        (Format::Parquet, "null") => &[],
        (Format::Parquet | Format::Csv, "memory" | "disk") => &["tpchgen-cli", "duckdb-tpch"],
        (Format::Csv | Format::Tbl, _) => &["tpchgen-cli"],
        _ => &[],
    };
    let quoted: Vec<String> = peers.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

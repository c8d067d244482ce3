//! The flags of `dyno tpch bench`.

use clap::Args as ClapArgs;
use dyno_tpch_files::{Compression, Format, Mode, SinkKind};

use super::BenchArgs;

#[derive(Debug, ClapArgs)]
#[command(
    mut_arg("out", |arg| arg.alias("report")),
    after_help = "Examples:
  dyno tpch bench --sf 1 --peers
  dyno tpch bench --sf 10 --format tbl --sink null --repeats 3
  dyno tpch bench --sf 1 --sink direct --tables lineitem,orders

Files go to memory; with --sink std, direct or uring to the disk of --data-dir, and with --sink \
null nowhere. `dyno run tpch` compares modes, formats, sinks and numbers of threads."
)]
pub struct TpchBenchArgs {
    /// Write tables of scale factor N; 1 is about a gigabyte of text
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub sf: f64,
    /// Write FORMAT: parquet, orc, csv or tbl
    #[arg(long, value_name = "FORMAT", default_value = "parquet")]
    pub format: Format,
    /// Turn rows into pages by MODE: baseline, zero-copy or true-zero-copy
    #[arg(long, value_name = "MODE", default_value = "true-zero-copy")]
    pub mode: Mode,
    /// Compress with CODEC: none, snappy, zstd[:1-22], lz4, or zlib for ORC [default: snappy; none
    /// for csv and tbl]
    #[arg(long, value_name = "CODEC")]
    pub compression: Option<Compression>,
    /// Use N threads [default: all]
    #[arg(long, alias = "jobs", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub threads: Option<u64>,
    /// Write through SINK: auto, std, direct, uring or null
    #[arg(long, value_name = "SINK", default_value = "auto")]
    pub sink: SinkKind,
    /// Write only these tables, separated by commas [default: all eight]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub tables: Vec<dyno_tpch::Table>,
    #[command(flatten)]
    pub bench: BenchArgs,
}

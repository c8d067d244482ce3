//! `dyno tpch bench` as it is written.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use dyno_tpch_files::{Compression, Format, Mode, SinkKind};

use super::PeersFrom;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpch bench --sf 1 --peers\n  \
    dyno tpch bench --sf 10 --format tbl --sink null --repeats 3\n  \
    dyno tpch bench --sf 1 --sink direct --tables lineitem,orders\n\n\
    Files go to memory, with --sink std, direct or uring to the disk of --data-dir, with --sink null nowhere.\n\
    One thread and two, modes, formats and sinks side by side: `dyno run tpch`.")]
pub struct TpchBenchArgs {
    /// Scale factor: 1 is about a gigabyte of text
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub sf: f64,
    /// parquet, orc, csv or tbl
    #[arg(long, value_name = "FORMAT", default_value = "parquet")]
    pub format: Format,
    /// How rows become pages: baseline, zero-copy or true-zero-copy
    #[arg(long, value_name = "MODE", default_value = "true-zero-copy")]
    pub mode: Mode,
    /// none, snappy, zstd[:1-22], lz4, or zlib for ORC [default: snappy, for text none]
    #[arg(long, value_name = "CODEC")]
    pub compression: Option<Compression>,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub jobs: Option<u64>,
    /// auto, std, direct, uring or null
    #[arg(long, value_name = "SINK", default_value = "auto")]
    pub sink: SinkKind,
    /// Tables to write, separated by commas [default: all eight]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub tables: Vec<dyno_tpch::Table>,
    /// Timed invocations of each system
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Run tpchgen-cli and DuckDB too, where they can do the same
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Keep scratch files here [default: ~/.cache/dynolab]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Write the run below this directory
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub report: PathBuf,
    /// Print the report as JSON instead of the headline
    #[arg(long)]
    pub json: bool,
}

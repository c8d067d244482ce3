//! The command line of `readback`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dyno_tpch::Table;
use dyno_tpch_files::Format;

/// What can be read back.
#[derive(Debug, Subcommand)]
pub enum ReadbackCommand {
    /// Reads a spots table by the reader of the parquet crate
    Spots {
        /// The table's directory, made by `dyno ingest load`
        table: PathBuf,
    },
    /// Reads TPC-H tables by the readers of parquet, orc-rust and csv
    Tpch(TpchReadbackArgs),
}

/// Arguments of `readback tpch`.
#[derive(Debug, Args)]
pub struct TpchReadbackArgs {
    /// The directory of the tables: DIR/lineitem.parquet, or parts DIR/lineitem/lineitem.1.parquet and on
    pub directory: PathBuf,
    /// parquet, orc, csv or tbl
    #[arg(long, value_name = "FORMAT")]
    pub format: Format,
    /// Which tables [default: all eight]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub tables: Vec<Table>,
    /// Count only the lengths of comments and addresses
    #[arg(long)]
    pub lengths: bool,
}

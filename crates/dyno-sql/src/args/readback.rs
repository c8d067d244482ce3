//! The command line of `readback`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dyno_tpch::Table;
use dyno_tpch_files::Format;

/// The kinds of tables that can be read back.
#[derive(Debug, Subcommand)]
pub enum ReadbackCommand {
    /// Read a spots table with the reader of the parquet crate
    Spots {
        /// Directory of the table, made by `dyno ingest load`
        table: PathBuf,
    },
    /// Read the rows of another feed with the reader of the parquet crate
    Feed {
        /// Directory of the table, made by `dyno ingest load`
        table: PathBuf,
        /// Read the rows of FEED, such as rbn
        #[arg(long, value_name = "FEED")]
        feed: String,
    },
    /// Read a training set with the reader of the parquet crate
    Features {
        /// Parquet file of the set, made by `dyno ingest features`
        set: PathBuf,
    },
    /// Read TPC-H tables with the readers of parquet, orc-rust and csv
    Tpch(TpchReadbackArgs),
}

/// Arguments of `readback tpch`: which files to read, and how much of their texts.
#[derive(Debug, Args)]
pub struct TpchReadbackArgs {
    /// Directory of the tables: DIR/lineitem.parquet, or parts DIR/lineitem/lineitem.1.parquet, ...
    pub directory: PathBuf,
    /// Read files of FORMAT: parquet, orc, csv or tbl
    #[arg(long, value_name = "FORMAT")]
    pub format: Format,
    /// Read only these tables [default: all eight]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub tables: Vec<Table>,
    /// Count only the lengths of comments and addresses
    #[arg(long)]
    pub lengths: bool,
}

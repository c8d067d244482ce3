//! `dyno ingest ...` as it is written.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::PeersFrom;
use crate::units::{bytes, count, share};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest gen --rows 2M --months 2 --seed 1 --out archives\n  \
    dyno ingest load archives/*.csv.gz --into spots\n  \
    dyno ingest query spots \"SELECT band, count(*) FROM spots GROUP BY band ORDER BY band\"\n  \
    dyno ingest status spots")]
pub struct IngestArgs {
    #[command(subcommand)]
    pub command: IngestCommand,
}

#[derive(Debug, Subcommand)]
pub enum IngestCommand {
    /// Make archives that look like the published ones, from a seed
    Gen(GenerateArgs),
    /// Load archives into a table; what is there already is not loaded again
    Load(LoadArgs),
    /// Answer SQL on a table, called spots or wspr.bronze
    Query(QueryArgs),
    /// Say what is in a table
    Status(StatusArgs),
    /// Measure one load, with its record and report
    Bench(BenchArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest gen --rows 6M --months 3 --seed 7 --out archives\n  \
    dyno ingest gen --rows 100k --months 1 --quirks 0.01 --out odd")]
pub struct GenerateArgs {
    /// Rows in all months together, such as 6000000 or 6M
    #[arg(long, value_name = "TOTAL", value_parser = count)]
    pub rows: u64,
    /// Archives to make, one a month
    #[arg(long, value_name = "M", default_value_t = 1)]
    pub months: u32,
    /// The first month
    #[arg(long, value_name = "YYYY-MM", default_value = "2023-01")]
    pub start: String,
    /// Decides every byte
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Share of rows with a planted oddity; what was planted is written beside each archive
    #[arg(long, value_name = "RATE", value_parser = share, default_value = "0")]
    pub quirks: f64,
    /// Plain .csv instead of .csv.gz
    #[arg(long)]
    pub plain: bool,
    /// Threads, a month each [default: all]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Where to write them; made when missing
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest load archives/*.csv.gz --into spots\n  \
    dyno ingest load wsprspots-2023-01.zip --into spots --max-bad 1%\n  \
    zcat today.csv.gz | dyno ingest load - --into spots --as today\n\n\
    A file is .csv.gz, .csv, .zip or .parquet, which its first bytes tell. An archive is known by its\n\
    feed and month (wsprspots-2023-01.* is wspr/2023-01) or else by its name: loading it again\n\
    replaces it, unless its bytes are the same. Bad rows are kept aside with line and reason. A load\n\
    that is killed leaves the table as it was; the same command does the rest.")]
pub struct LoadArgs {
    /// Archives; - is standard input
    #[arg(value_name = "FILES", required = true)]
    pub files: Vec<PathBuf>,
    /// The table's directory; made when missing
    #[arg(long, value_name = "DIR")]
    pub into: PathBuf,
    /// Threads at work [default: all]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Share of bad rows that an archive may have
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.1%")]
    pub max_bad: f64,
    /// Memory to stay within
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub memory: u64,
    /// Which archive the one input is, instead of what its name says
    #[arg(long = "as", value_name = "ARCHIVE")]
    pub identity: Option<String>,
    /// Which inflater to use
    #[arg(long, value_enum, default_value = "native")]
    pub inflate: Inflate,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Inflate {
    /// Ours
    Native,
    /// zlib-rs, slower, for when ours is doubted
    Portable,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest query spots \"SELECT count(*) FROM spots\"\n  \
    dyno ingest query spots \"SELECT callsign, avg(snr) AS avg_snr, count(*) AS count FROM wspr.bronze\n    \
    GROUP BY callsign ORDER BY count DESC LIMIT 10\" --format json\n\n\
    Columns: id timestamp reporter reporter_grid snr frequency callsign grid power drift distance\n\
    azimuth band mode version code column_count.")]
pub struct QueryArgs {
    /// The table's directory
    #[arg(value_name = "DIR")]
    pub table: PathBuf,
    /// The question
    #[arg(value_name = "SQL")]
    pub sql: String,
    /// How to print the answer
    #[arg(long, value_enum, default_value = "table")]
    pub format: TableFormat,
    /// Threads at work [default: all]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For a person
    Table,
    /// With a header line
    Csv,
    /// An array of objects
    Json,
}

impl TableFormat {
    pub fn name(self) -> &'static str {
        match self {
            TableFormat::Table => "table",
            TableFormat::Csv => "csv",
            TableFormat::Json => "json",
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  dyno ingest status spots\n  dyno ingest status spots --json")]
pub struct StatusArgs {
    /// The table's directory
    #[arg(value_name = "DIR")]
    pub table: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadSource {
    /// .csv.gz
    Gz,
    /// .csv
    Csv,
    /// .parquet
    Parquet,
}

impl LoadSource {
    pub fn name(self) -> &'static str {
        match self {
            LoadSource::Gz => "gz",
            LoadSource::Csv => "csv",
            LoadSource::Parquet => "parquet",
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest bench --rows 2M --workers 2\n  \
    dyno ingest bench --source parquet --peers --repeats 10 --report runs")]
pub struct BenchArgs {
    /// What is loaded
    #[arg(long, value_enum, default_value = "gz")]
    pub source: LoadSource,
    /// Rows to generate and load
    #[arg(long, value_name = "TOTAL", value_parser = count, default_value = "2M")]
    pub rows: u64,
    /// Archives they are in
    #[arg(long, value_name = "M", default_value_t = 2)]
    pub months: u32,
    /// Threads at work
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub workers: u32,
    /// Invocations of each system
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repeats: u32,
    /// Run the peers too
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Write the run and its report below this directory
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub report: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

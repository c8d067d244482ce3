//! The flags of `dyno ingest ...`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use dyno_ingest_feeds::Feed;

use super::IngestServeArgs;
use super::feeds::{CollectArgs, FetchArgs, all_archives, all_feeds, feed};
use super::watch::WatchArgs;
use super::{BenchArgs, Catalog};
use crate::units::{bytes, count_from_one, duration, one_or_more, share};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno ingest gen --rows 2M --months 2 --seed 1 --out archives
  dyno ingest load archives/*.csv.gz --into spots
  dyno ingest query spots \"SELECT band, count(*) FROM spots GROUP BY band ORDER BY band\"
  dyno ingest status spots
  dyno ingest watch archives --into spots --once
  dyno ingest fetch rbn 2024-11-23..2024-11-24 --into days
  dyno ingest load days/*.zip --into spots --feed rbn")]
pub struct IngestArgs {
    #[command(subcommand)]
    pub command: IngestCommand,
}

#[derive(Debug, Subcommand)]
pub enum IngestCommand {
    /// Generate archives that look like the published ones, from a seed
    Gen(GenerateArgs),
    /// Load archives into a table, skipping those that are in it already
    Load(LoadArgs),
    /// Run SQL on a table
    Query(QueryArgs),
    /// Serve a table to psql, Grafana, drivers, browsers and clocks
    Serve(IngestServeArgs),
    /// Make a training set of the spots of a table, a row for each spot
    Features(FeaturesArgs),
    /// Answer a question in plain words, with SQL that a language model writes
    Ask(AskArgs),
    /// Show what is in a table
    Status(StatusArgs),
    /// Load what arrives in a folder, a live feed or a topic, each row once
    Watch(Box<WatchArgs>),
    /// Write the messages of a live feed into files, one an hour
    Collect(CollectArgs),
    /// Download published archives
    Fetch(FetchArgs),
    /// Measure one load, with a record and a report
    Bench(IngestBenchArgs),
}

const GENERATE_EXAMPLES: &str = "\
Examples:
  dyno ingest gen --rows 6M --months 3 --seed 7 --out archives
  dyno ingest gen --rows 100k --months 1 --quirks 0.01 --out odd
  dyno ingest gen --feed rbn --rows 50k --months 3 --start 2010-12-30 --out days";

#[derive(Debug, ClapArgs)]
#[command(after_help = format!("{GENERATE_EXAMPLES}

An archive is {}. --months counts archives in each of these cases.", all_archives()))]
pub struct GenerateArgs {
    /// Generate TOTAL rows in all months together, such as 6000000 or 6M
    #[arg(long, value_name = "TOTAL", value_parser = count_from_one)]
    pub rows: u64,
    /// Generate archives of FEED
    #[arg(long, value_name = "FEED", value_parser = feed(), default_value = "wspr")]
    pub feed: &'static Feed,
    /// Generate N archives, of a month each
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub months: u32,
    /// Begin with this month; feeds other than wspr also accept YYYY-MM-DD
    #[arg(long, value_name = "YYYY-MM", default_value = "2023-01")]
    pub start: String,
    /// Derive every byte from SEED
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Plant an oddity in this share of the rows, and list them in a file beside each archive
    #[arg(long, value_name = "RATE", value_parser = share, default_value = "0")]
    pub quirks: f64,
    /// Write .csv instead of .csv.gz
    #[arg(long)]
    pub plain: bool,
    /// Write the rows of each month in random order; takes about 100 bytes of memory a row
    #[arg(long)]
    pub shuffle: bool,
    /// Use N threads, each for a month at a time [default: all]
    #[arg(long, alias = "workers", value_name = "N", value_parser = one_or_more)]
    pub threads: Option<usize>,
    /// Write the archives into DIR; made when missing
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno ingest load archives/*.csv.gz --into spots
  dyno ingest load wsprspots-2023-01.zip --into spots --max-bad 1%
  zcat today.csv.gz | dyno ingest load - --into spots --as today
  dyno ingest load archives/*.csv.gz --into clickhouse://loader@db1:8123/wspr.bronze
  dyno ingest load archives/*.csv.gz --into https://db1,db2/wspr.bronze --cluster pair
  dyno ingest load days/*.zip --into spots --feed rbn
  dyno ingest load archives/*.csv.gz --into spots --catalog iceberg

Files may be .csv.gz, .csv, .zip or .parquet; the first bytes decide, not the name. Parquet pages \
may be stored, or compressed with SNAPPY, ZSTD or LZ4.

An archive is identified by its feed and month (wsprspots-2023-01.* is wspr/2023-01), or else by \
its file name. Loading it again replaces it, unless its bytes are the same. Each file is one \
commit, so put many small logs into one .zip.

A file that looks like another feed's is refused, and so is one that becomes shorter while it is \
read. Bad rows are set aside with their line and the reason. A load that is killed leaves the \
table as it was; run the same command again.")]
pub struct LoadArgs {
    /// Archives to load; - is standard input
    #[arg(value_name = "FILES", required = true)]
    pub files: Vec<PathBuf>,
    /// Load into this directory, or clickhouse://USER@HOST:PORT/DATABASE.TABLE; made when missing
    #[arg(long, value_name = "DIR|ADDRESS")]
    pub into: PathBuf,
    #[arg(long, value_name = "FEED", value_parser = feed(), default_value = "wspr",
        help = format!("Read archives of FEED: {}", all_feeds()))]
    pub feed: &'static Feed,
    /// Use N threads [default: all]
    #[arg(long, alias = "workers", value_name = "N", value_parser = one_or_more)]
    pub threads: Option<usize>,
    /// Reject an archive with more bad rows than SHARE
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.1%")]
    pub max_bad: f64,
    /// Use at most SIZE of memory
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub memory: u64,
    /// Load the one input as ARCHIVE, instead of what its name says
    #[arg(long = "as", value_name = "ARCHIVE")]
    pub identity: Option<String>,
    /// Describe the table in CATALOG too; a table that has it keeps it up to date
    #[arg(long, value_enum, value_name = "CATALOG")]
    pub catalog: Option<Catalog>,
    /// Decompress .gz and .zip with DECODER
    #[arg(long, value_enum, value_name = "DECODER", default_value = "native")]
    pub inflate: Inflate,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerLoadArgs,
}

/// Flags for a table on ClickHouse servers.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Into ClickHouse")]
pub struct ServerLoadArgs {
    #[command(flatten)]
    pub access: ServerAccessArgs,
    /// Use N connections for each archive [default: 1, or 2 if there is one archive]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub connections: Option<usize>,
    /// Make string columns of a new table LowCardinality(String)
    #[arg(long)]
    pub dictionary_types: bool,
    /// Use the servers of ADDRESS as the shards of the cluster NAME
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Retry for TIME while a server is unreachable or busy
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub patience: Duration,
}

/// The password of a ClickHouse user; CLICKHOUSE_PASSWORD is the other way to give it.
#[derive(Debug, ClapArgs)]
pub struct ServerAccessArgs {
    /// Read the password from FILE [default: the environment variable CLICKHOUSE_PASSWORD]
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Inflate {
    /// The built-in decoder
    Native,
    /// zlib-rs (slower) instead of the built-in decoder
    Portable,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno ingest query spots \"SELECT count(*) FROM spots\"
  dyno ingest query spots \"SELECT band, avg(snr) FROM wspr.bronze GROUP BY band\" --format csv
  dyno ingest query spots \"SELECT callsign, count(*) AS count FROM spots
    GROUP BY callsign ORDER BY count DESC LIMIT 10\" --format json

Spots of WSPR are the table spots, also called wspr.bronze; each other feed has a table of its \
name. Columns of spots: id timestamp reporter reporter_grid snr frequency callsign grid power \
drift distance azimuth band mode version code column_count. For another feed: SHOW COLUMNS FROM \
rbn.")]
pub struct QueryArgs {
    /// Directory of the table
    #[arg(value_name = "DIR")]
    pub table: PathBuf,
    /// Statement to run
    #[arg(value_name = "SQL")]
    pub sql: String,
    /// Print the answer as FORMAT
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
    /// Print JSON, as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Use N threads [default: all]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub threads: Option<usize>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno ingest features spots --out features.parquet
  dyno ingest features spots --solar spots --out features.parquet --memory 256MiB
  dyno ingest features spots --format arrow --out - | python3 train.py

Rows are in the order of time. Columns: timestamp, sine and cosine of the time of the day and of the \
year, latitude and longitude of sender and receiver, distance_km and azimuth_deg of the great circle \
between them, band, power_dbm, and what is to be predicted, snr_db. With --solar also solar_flux_sfu, \
sunspots, kp and ap, each the mean of the spot's day, which is empty where the table has no value.

Positions are the middles of the Maidenhead grids. Spots whose grid is missing or is not a grid are \
left out and counted.")]
pub struct FeaturesArgs {
    /// Directory of the table
    #[arg(value_name = "DIR")]
    pub table: PathBuf,
    /// Write the training set to FILE, over an earlier one; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Write the training set as FORMAT
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "parquet")]
    pub format: TrainingFormat,
    /// Add the solar indices of each spot's day, from the table of the feed solar in DIR
    #[arg(long, value_name = "DIR")]
    pub solar: Option<PathBuf>,
    /// Use N threads [default: all]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub threads: Option<usize>,
    /// Use at most SIZE of memory to sort; beyond that spill to disk
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub memory: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrainingFormat {
    /// A Parquet file
    Parquet,
    /// A stream of Arrow record batches
    Arrow,
}

impl TrainingFormat {
    pub fn name(self) -> &'static str {
        match self {
            TrainingFormat::Parquet => "parquet",
            TrainingFormat::Arrow => "arrow",
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno ingest ask spots \"which band was best from Europe to Japan in March?\"
  dyno ingest ask spots \"which station was heard furthest away?\" --model qwen

The statement is shown with its rows, because nothing else tells whether the model understood the \
question. It may only read. The endpoint learns the table's columns, its number of rows, the time \
that they cover, and the question. Rows are never sent to it; the reason why a statement could not \
be run is.")]
pub struct AskArgs {
    /// Directory of the table
    #[arg(value_name = "DIR")]
    pub table: PathBuf,
    /// Question, in plain words
    #[arg(value_name = "QUESTION")]
    pub question: String,
    /// Ask the OpenAI-compatible endpoint at URL: llama.cpp's server, vLLM, SGLang
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080/v1")]
    pub endpoint: String,
    /// Ask the model NAME [default: the first that the endpoint lists]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Read the endpoint's key from FILE [default: the environment variable DYNO_LLM_KEY]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Wait TIME for each answer of the model
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2m")]
    pub wait: Duration,
    /// Let the model correct a statement that could not be run, at most N times
    #[arg(long, alias = "mends", value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u8).range(..=10))]
    pub corrections: u8,
    /// Show at most N rows
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_rows: u32,
    /// Stop a statement after TIME
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub time_limit: Duration,
    /// Let a statement use at most SIZE of memory; beyond that it spills to disk
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub memory: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Aligned columns
    Table,
    /// Comma-separated values with a header line
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
#[command(after_help = "Examples:
  dyno ingest status spots
  dyno ingest status spots --json
  dyno ingest status clickhouse://127.0.0.1:8123/wspr.bronze

Exits 1 when a data file is missing or has the wrong length. To repair the table, load the archive \
that the file belongs to again.")]
pub struct StatusArgs {
    /// Directory of the table, or clickhouse://USER@HOST:PORT/DATABASE.TABLE
    #[arg(value_name = "DIR|ADDRESS")]
    pub table: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub access: ServerAccessArgs,
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
#[command(
    mut_arg("out", |arg| arg.alias("report")),
    after_help = "Examples:
  dyno ingest bench --rows 2M --threads 2
  dyno ingest bench --source parquet --peers --repeats 10 --out runs"
)]
pub struct IngestBenchArgs {
    /// Load archives of this form
    #[arg(long, value_enum, value_name = "FORM", default_value = "gz")]
    pub source: LoadSource,
    /// Generate and load TOTAL rows, such as 6000000 or 6M
    #[arg(long, value_name = "TOTAL", value_parser = count_from_one, default_value = "2M")]
    pub rows: u64,
    /// Generate N archives, of a month each
    #[arg(long, value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub months: u32,
    /// Use N threads
    #[arg(long, alias = "workers", value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    #[command(flatten)]
    pub bench: BenchArgs,
}

//! `dyno ingest ...` as it is written.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use dyno_ingest_watch::Whose;

use super::PeersFrom;
use super::feeds::{CollectArgs, FetchArgs, feed};
use super::watch::WatchArgs;
use crate::units::{bytes, count_from_one, duration, one_or_more, share};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest gen --rows 2M --months 2 --seed 1 --out archives\n  \
    dyno ingest load archives/*.csv.gz --into spots\n  \
    dyno ingest query spots \"SELECT band, count(*) FROM spots GROUP BY band ORDER BY band\"\n  \
    dyno ingest status spots\n  \
    dyno ingest watch archives --into spots --once\n  \
    dyno ingest fetch rbn 2024-11-23..2024-11-24 --into days\n  \
    dyno ingest load days/*.zip --into spots --feed rbn")]
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
    /// Answer SQL on a table, called spots or wspr.bronze; other feeds have tables of their names
    Query(QueryArgs),
    /// Answer a question in plain words, by SQL that a language model writes
    Ask(AskArgs),
    /// Say what is in a table
    Status(StatusArgs),
    /// Load what arrives in a folder, from a live feed or in a topic, each row once
    Watch(Box<WatchArgs>),
    /// Write what a live feed sends into files, an hour each
    Collect(CollectArgs),
    /// Download archives that are published
    Fetch(FetchArgs),
    /// Measure one load, with its record and report
    Bench(BenchArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest gen --rows 6M --months 3 --seed 7 --out archives\n  \
    dyno ingest gen --rows 100k --months 1 --quirks 0.01 --out odd\n  \
    dyno ingest gen --feed rbn --rows 50k --months 3 --start 2010-12-30 --out days")]
pub struct GenerateArgs {
    /// Rows in all months together, such as 6000000 or 6M
    #[arg(long, value_name = "TOTAL", value_parser = count_from_one)]
    pub rows: u64,
    /// Whose archives
    #[arg(long, value_parser = feed(), default_value = "wspr")]
    pub feed: Whose,
    /// Archives to make, one a month; of other feeds one a day (rbn), an hour (psk), a log (cabrillo), a table (solar)
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub months: u32,
    /// The first month; of other feeds YYYY-MM-DD, too
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
    #[arg(long, value_name = "N", value_parser = one_or_more)]
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
    zcat today.csv.gz | dyno ingest load - --into spots --as today\n  \
    dyno ingest load archives/*.csv.gz --into clickhouse://loader@db1:8123/wspr.bronze\n  \
    dyno ingest load archives/*.csv.gz --into https://db1,db2/wspr.bronze --cluster pair\n  \
    dyno ingest load days/*.zip --into spots --feed rbn\n\n\
    A file is .csv.gz, .csv, .zip or .parquet, which its first bytes tell. An archive is known by its\n\
    feed and month (wsprspots-2023-01.* is wspr/2023-01) or else by its name: loading it again\n\
    replaces it, unless its bytes are the same. Logs belong together in a .zip: each file is a commit.\n\
    A file that looks like another feed's is refused, and so is one that becomes shorter while it is read. Bad rows\n\
    are kept aside with line and reason. A load that is killed leaves the table as it was; the same command does the\n\
    rest. A pipe is read as standard input. Parquet pages may be stored, or compressed with SNAPPY, ZSTD or LZ4.")]
pub struct LoadArgs {
    /// Archives; - is standard input
    #[arg(value_name = "FILES", required = true)]
    pub files: Vec<PathBuf>,
    /// The table's directory, or clickhouse://USER@HOST:PORT/DATABASE.TABLE; made when missing
    #[arg(long, value_name = "DIR|ADDRESS")]
    pub into: PathBuf,
    /// Whose archives they are: spots of WSPR, rbn (Reverse Beacon Network), cabrillo (contest logs), psk (PSK
    /// Reporter, as collected), solar (F10.7, Kp, sunspots)
    #[arg(long, value_parser = feed(), default_value = "wspr")]
    pub feed: Whose,
    /// Threads at work [default: all]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
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
    #[command(flatten)]
    pub server: ServerLoadArgs,
}

/// For a table on ClickHouse servers.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Into ClickHouse")]
pub struct ServerLoadArgs {
    #[command(flatten)]
    pub access: ServerAccessArgs,
    /// Connections for each archive [default: 1, and 2 for a single one]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub connections: Option<usize>,
    /// Give the strings of a table that is made dictionaries: LowCardinality(String)
    #[arg(long)]
    pub dictionary_types: bool,
    /// The cluster whose shards the servers in the address are
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// How long a server may be away or busy
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub patience: Duration,
}

/// How a user of ClickHouse proves itself; the variable is the other way.
#[derive(Debug, ClapArgs)]
pub struct ServerAccessArgs {
    /// File with the password, instead of CLICKHOUSE_PASSWORD
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
#[command(after_help = "Examples:\n  \
    dyno ingest query spots \"SELECT count(*) FROM spots\"\n  \
    dyno ingest query spots \"SELECT callsign, avg(snr) AS avg_snr, count(*) AS count FROM wspr.bronze\n    \
    GROUP BY callsign ORDER BY count DESC LIMIT 10\" --format json\n\n\
    Columns: id timestamp reporter reporter_grid snr frequency callsign grid power drift distance\n\
    azimuth band mode version code column_count. Other feeds: SHOW COLUMNS FROM rbn.")]
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
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub threads: Option<usize>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest ask spots \"which band was best from Europe to Japan in March?\"\n  \
    dyno ingest ask spots \"who was heard furthest away?\" --endpoint http://127.0.0.1:8000/v1 --model qwen\n\n\
    The statement is shown with its rows, because nothing else says whether the question was understood. It may\n\
    only read. The endpoint is told the table's columns, how many rows it has and of which time, and the question;\n\
    what a statement gives stays here, but for the reason why one could not be run.")]
pub struct AskArgs {
    /// The table's directory
    #[arg(value_name = "DIR")]
    pub table: PathBuf,
    /// The question, in plain words
    #[arg(value_name = "QUESTION")]
    pub question: String,
    /// An OpenAI-compatible endpoint: llama.cpp's server, vLLM, SGLang
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080/v1")]
    pub endpoint: String,
    /// Which of its models [default: the first that it lists]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Read its key from this file [default: DYNO_LLM_KEY in the environment, if it is there]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Wait so long for each of its answers
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2m")]
    pub wait: Duration,
    /// Let the model correct a statement that could not be run, at most N times
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(..=10))]
    pub mends: u8,
    /// Show so many rows at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_rows: u32,
    /// Let a statement run so long
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub time_limit: Duration,
    /// Let a statement use so much memory; it spills to disk beyond that
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub memory: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
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
#[command(
    after_help = "Examples:\n  dyno ingest status spots\n  dyno ingest status spots --json\n  \
    dyno ingest status clickhouse://127.0.0.1:8123/wspr.bronze\n\n\
    Exits 1 when a data file is missing or has another length than it should. Load the archive that it belongs \
    to again: that mends the table."
)]
pub struct StatusArgs {
    /// The table's directory, or clickhouse://USER@HOST:PORT/DATABASE.TABLE
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
#[command(after_help = "Examples:\n  \
    dyno ingest bench --rows 2M --workers 2\n  \
    dyno ingest bench --source parquet --peers --repeats 10 --report runs")]
pub struct BenchArgs {
    /// What is loaded
    #[arg(long, value_enum, default_value = "gz")]
    pub source: LoadSource,
    /// Rows to generate and load
    #[arg(long, value_name = "TOTAL", value_parser = count_from_one, default_value = "2M")]
    pub rows: u64,
    /// Archives they are in
    #[arg(long, value_name = "M", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub months: u32,
    /// Threads at work
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: u32,
    /// Invocations of each system
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
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

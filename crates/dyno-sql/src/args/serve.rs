//! The flags of `dyno-sql serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{LimitArgs, at_least_one};

/// The examples of its help.
pub const EXAMPLES: &str = "\
Examples:
  dyno-sql serve spots/ --pg 127.0.0.1:15432
  dyno-sql serve spots/ --pg 0.0.0.0:15432 --http 0.0.0.0:8088 --token-file token \\
    --tls-cert c.pem --tls-key k.pem";

/// Arguments of `dyno-sql serve`, which answers clients until it is stopped.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("front").required(true).multiple(true).args(["pg", "http"])))]
pub struct ServeArgs {
    /// Directory of the table, made by `dyno ingest load`
    pub table: PathBuf,
    /// Serve clients of PostgreSQL on HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    pub pg: Option<String>,
    /// Serve HTTP on HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// Read the token that clients must show from FILE [default: the environment variable
    /// DYNO_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Show clients the certificate chain in PEM
    #[arg(long, value_name = "PEM", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Use the private key in PEM, which belongs to --tls-cert
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Stop a statement after MILLISECONDS
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 60_000)]
    pub time_limit_ms: u64,
    /// Answer a statement with at most N rows, and with an error if there are more
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = at_least_one)]
    pub max_rows: usize,
    /// Run at most N statements at the same time; others wait
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    pub max_statements: usize,
    /// Serve at most N clients of PostgreSQL, and as many of HTTP
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    pub max_connections: usize,
    /// Threads and memory of each statement.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Log what is at least this important, on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub log_level: LogLevel,
    /// Log lines for people, or one JSON object a line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Nothing
    Off,
    /// What was lost or refused
    Error,
    /// What is tried again, or may need an operator
    Warn,
    /// What was done
    #[default]
    Info,
    /// Each step
    Debug,
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Time, level and message
    #[default]
    Text,
    /// For a collector of logs
    Json,
}

//! The flags of `dyno ingest serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::LogArgs;
use crate::units::{bytes, one_or_more, time_above_zero};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno ingest serve spots --pg 127.0.0.1:15432
  dyno ingest serve spots --pg 127.0.0.1:15432 --http 127.0.0.1:8088 --memory 64MiB
  dyno ingest serve spots --http 0.0.0.0:8088 --token-file token --tls-cert c.pem --tls-key k.pem

  psql -h 127.0.0.1 -p 15432 -c \"SELECT band, count(*) FROM spots GROUP BY band\"
  curl --data 'SELECT count(*) FROM spots' 127.0.0.1:8088/query
  curl '127.0.0.1:8088/spots?band=20m&call=K1ABC&format=csv'

Each statement sees what was committed before it began. Statements that would change something are \
refused. Addresses beyond this machine are refused without a token, which PostgreSQL's clients send \
as the password. Ctrl-C stops it.")]
#[command(group(clap::ArgGroup::new("front").required(true).multiple(true).args(["pg", "http"])))]
pub struct IngestServeArgs {
    /// Directory of the table
    #[arg(value_name = "DIR")]
    pub table: PathBuf,
    /// Serve clients of PostgreSQL on HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    pub pg: Option<String>,
    /// Serve HTTP on HOST:PORT: a page, statements, spots, metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// Read the token that clients must show from FILE
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Show clients the certificate chain in PEM
    #[arg(long, value_name = "PEM", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Use the private key in PEM, which belongs to --tls-cert
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Use N threads for each statement [default: all]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub threads: Option<usize>,
    /// Let a statement use at most SIZE of memory to group, sort and join
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "256MiB")]
    pub memory: u64,
    /// Stop a statement after TIME
    #[arg(long, value_name = "TIME", value_parser = time_above_zero, default_value = "60s")]
    pub time_limit: Duration,
    /// Answer with at most N rows, and with an error if there are more
    #[arg(long, value_name = "N", value_parser = one_or_more, default_value = "1000000")]
    pub max_rows: usize,
    /// Run at most N statements at the same time; others wait
    #[arg(long, value_name = "N", value_parser = one_or_more, default_value = "8")]
    pub max_statements: usize,
    /// Serve at most N clients of PostgreSQL, and as many of HTTP
    #[arg(long, value_name = "N", value_parser = one_or_more, default_value = "256")]
    pub max_connections: usize,
    #[command(flatten)]
    pub log: LogArgs,
}

//! `dyno txn bench` as it is written.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use dyno_rigs::txn::Durability;

use super::PeersFrom;
use super::tpcc::FormArg;
use crate::units::{bytes, count, duration};

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CarrierArg {
    /// Shared memory
    Ring,
    /// A Unix socket
    Unix,
    /// TCP on loopback
    Tcp,
}

/// Which rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeysArg {
    /// K2's, of which none is there at first.
    All,
    /// So many that are there.
    Rows(u64),
}

fn keys(text: &str) -> Result<KeysArg, String> {
    match text {
        "all" => Ok(KeysArg::All),
        text => count(text).map(KeysArg::Rows),
    }
}

/// A share of one: `0.99` becomes 99 hundredths.
fn theta(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not one of 0, 0.01, ... 0.99");
    let hundredths = text.parse::<f64>().map_err(|_| wrong())? * 100.0;
    match (0.0..=99.0).contains(&hundredths) && (hundredths - hundredths.round()).abs() < 1e-9 {
        true => Ok(hundredths.round() as u64),
        false => Err(wrong()),
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn bench --peers\n  \
    dyno txn bench --form interactive --carrier tcp --durability memory --depth 1     K2's own transaction\n  \
    dyno txn bench --writes 2 --partitions 8 --depth 256\n  \
    dyno txn bench --keys 1M --theta 0.99 --either --form interactive --clients 64 --depth 1\n  \
    dyno txn bench --rate 20000 --depth 1024     latencies count from the intended start\n\n\
    A transaction writes rows of 512 bytes under keys out of 2^31 and reads them again, as K2's does; every answer is\n\
    verified. With --keys N it reads and writes rows that are there. Each run starts a server of its own.")]
pub struct TxnBenchArgs {
    /// How clients reach the server
    #[arg(long, value_enum, default_value = "ring")]
    pub carrier: CarrierArg,
    /// When the server acknowledges: fsync, remote-memory or memory
    #[arg(long, value_name = "MODE", default_value = "fsync")]
    pub durability: Durability,
    /// How transactions go to the server
    #[arg(long, value_enum, default_value = "one-shot")]
    pub form: FormArg,
    /// Threads of clients
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub clients: u64,
    /// Transactions that each has under way
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub depth: u64,
    /// Rows written by a transaction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub writes: u64,
    /// Rows read by a transaction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub reads: u64,
    /// Half of the transactions write and half read, with --keys
    #[arg(long)]
    pub either: bool,
    /// Bytes of a value
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "512")]
    pub value: u64,
    /// Rows that are there; all: K2's keys, uniform over 2^31, read after they were written
    #[arg(long, value_name = "N", value_parser = keys, default_value = "all")]
    pub keys: KeysArg,
    /// How uneven rows are used, by Zipf's law, with --keys: 0 evenly, 0.99 as YCSB
    #[arg(long, value_name = "THETA", value_parser = theta, default_value = "0")]
    pub theta: u64,
    /// Transactions a second at random moments, whatever was answered; 0 as fast as they are answered
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rate: u64,
    /// How long
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3s")]
    pub duration: Duration,
    /// Pin the server's threads: 1, or 2-9, or 0,2,4 [default: one thread, not pinned]
    #[arg(long, value_name = "LIST", value_parser = super::database::cores)]
    pub cores: Option<super::database::Cores>,
    /// Partitions of the server
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub partitions: u64,
    /// Timed invocations of each system
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Run PostgreSQL and etcd too, with as many under way; one-shot and fsync alone
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Keep servers and scratch files here [default: ~/.cache/dynolab]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Write the run below this directory
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print the report as JSON instead of the headline
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_skew() {
        assert_eq!(keys("all"), Ok(KeysArg::All));
        assert_eq!(keys("1M"), Ok(KeysArg::Rows(1_000_000)));
        assert!(keys("none").is_err());
        assert_eq!(theta("0.99"), Ok(99));
        assert_eq!(theta("0"), Ok(0));
        for wrong in ["1", "-1", "0.995", "x", "NaN"] {
            assert!(theta(wrong).is_err(), "{wrong}");
        }
    }
}

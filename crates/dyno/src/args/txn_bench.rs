//! The flags of `dyno txn bench`.

use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use dyno_txn_node::Durability;

use super::tpcc::FormArg;
use super::{BenchArgs, CapacityArgs};
use crate::units::{bytes, count, duration};

/// The transport between clients and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportArg {
    /// Shared memory
    Ring,
    /// A Unix socket
    Unix,
    /// TCP on loopback
    Tcp,
}

/// The rows that transactions use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeysArg {
    /// K2's keys, whose rows do not exist at first.
    All,
    /// This number of rows, loaded before.
    Rows(u64),
}

fn keys(text: &str) -> Result<KeysArg, String> {
    match text {
        "all" => Ok(KeysArg::All),
        text => count(text).map(KeysArg::Rows),
    }
}

/// Parses Zipf's theta: `0.99` becomes 99 hundredths.
fn theta(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not one of 0, 0.01, ... 0.99");
    let hundredths = text.parse::<f64>().map_err(|_| wrong())? * 100.0;
    if (0.0..=99.0).contains(&hundredths) && (hundredths - hundredths.round()).abs() < 1e-9 {
        Ok(hundredths.round() as u64)
    } else {
        Err(wrong())
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    mut_arg("capacity", |arg| arg.conflicts_with_all(["rate", "duration"])),
    after_help = "Examples:
  dyno txn bench --peers
  dyno txn bench --form interactive --transport tcp --durability memory --depth 1 # as K2's own
  dyno txn bench --writes 2 --partitions 8 --depth 256
  dyno txn bench --keys 1M --theta 0.99 --either --form interactive --clients 64 --depth 1
  dyno txn bench --rate 20000 --depth 1024   # latencies count from the intended start
  dyno txn bench --capacity p99=10ms --peers # the highest rate that keeps this bound

Like K2's, a transaction writes rows of 512 bytes under keys out of 2^31 and reads them again; \
every answer is verified. With --keys N it reads and writes rows that exist. Each invocation \
starts a server of its own. A verdict about a rate needs 20 s of measured time in each invocation: \
add --duration 20s."
)]
pub struct TxnBenchArgs {
    /// Reach the server by TRANSPORT
    #[arg(
        long,
        alias = "carrier",
        value_enum,
        value_name = "TRANSPORT",
        default_value = "ring"
    )]
    pub transport: TransportArg,
    /// Acknowledge a commit after MODE: fsync, remote-memory or memory
    #[arg(long, value_name = "MODE", default_value = "fsync")]
    pub durability: Durability,
    /// Send transactions to the engine as FORM
    #[arg(long, value_enum, value_name = "FORM", default_value = "one-shot")]
    pub form: FormArg,
    /// Run N clients, each in a thread
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub clients: u64,
    /// Let each client have N transactions in flight
    #[arg(long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub depth: u64,
    /// Write N rows in each transaction
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(0..=100))]
    pub writes: u64,
    /// Read N rows in each transaction
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(0..=100))]
    pub reads: u64,
    /// With --keys, let half of the transactions only write and half only read
    #[arg(long)]
    pub either: bool,
    /// Write values of SIZE
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "512")]
    pub value: u64,
    /// Use N existing rows, or `all`: K2's keys, uniform over 2^31, read after they were written
    #[arg(long, value_name = "N", value_parser = keys, default_value = "all")]
    pub keys: KeysArg,
    /// With --keys, skew the choice of rows by Zipf's law: 0 is uniform, 0.99 is YCSB's
    #[arg(long, value_name = "THETA", value_parser = theta, default_value = "0")]
    pub theta: u64,
    /// Start N transactions a second in all, at random moments; 0 is as fast as they are answered
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rate: u64,
    /// Run each invocation for TIME
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3s")]
    pub duration: Duration,
    /// Pin one thread of the server to each core of LIST: 1, or 2-9, or 0,2,4 [default: one thread,
    /// not pinned]
    #[arg(long, value_name = "LIST", value_parser = super::database::cores)]
    pub cores: Option<super::database::Cores>,
    /// Split the database into N partitions
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub partitions: u64,
    #[command(flatten)]
    pub search: CapacityArgs,
    #[command(flatten)]
    pub bench: BenchArgs,
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

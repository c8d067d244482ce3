//! `dyno tpcc ...` as it is written.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use dyno_rigs::txn::{Durability, Isolation};
use dyno_txn_api::Target;

use crate::units::{bytes, duration};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpcc load --warehouses 1 --on local:tpcc\n  \
    dyno tpcc run --on local:tpcc --mix full --duration 10s\n  \
    dyno tpcc check --on local:tpcc\n\n\
    The transactions are those of TPC-C, the figures are not: they are transactions a second by type, unaudited, and not\n\
    comparable with published results.")]
pub struct TpccArgs {
    #[command(subcommand)]
    pub command: TpccCommand,
}

#[derive(Debug, Subcommand)]
pub enum TpccCommand {
    /// Fill a database with the initial population
    Load(TpccLoadArgs),
    /// Run transactions for a while, with the consistency conditions checked before and after
    Run(TpccRunArgs),
    /// Check the twelve consistency conditions
    Check(TpccCheckArgs),
}

/// Which database.
#[derive(Debug, Clone, ClapArgs)]
pub struct OnArgs {
    /// The database: local:DIR, dyno://HOST:PORT, etcd://HOST:PORT,..., or postgres:DSN
    #[arg(long, value_name = "ENGINE")]
    pub on: Target,
    /// When our engine in this process acknowledges: fsync or memory
    #[arg(long, value_name = "MODE", default_value = "fsync")]
    pub durability: Durability,
    /// Memory for rows of our engine in this process
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "4GiB")]
    pub memory: u64,
    /// Pin the threads of our engine in this process: 1, or 2-9, or 0,2,4
    #[arg(long, value_name = "LIST", value_parser = cores)]
    pub cores: Option<Cores>,
    /// A file with the token of a server of ours [default: what DYNO_TOKEN holds]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Speak TLS with a server of ours whose certificate these roots have signed
    #[arg(long, value_name = "PEM")]
    pub tls_ca: Option<PathBuf>,
    /// Do not move to shared memory when the server is on this host
    #[arg(long)]
    pub no_ring: bool,
    /// What transactions are kept apart by on a database of PostgreSQL's wire
    #[arg(long, value_enum, default_value = "serializable")]
    pub isolation: IsolationArg,
}

/// What transactions are kept apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IsolationArg {
    /// As if one after the other
    Serializable,
    /// Statements see what is committed; rows that are read stay locked until the end
    ReadCommitted,
}

impl From<IsolationArg> for Isolation {
    fn from(arg: IsolationArg) -> Isolation {
        match arg {
            IsolationArg::Serializable => Isolation::Serializable,
            IsolationArg::ReadCommitted => Isolation::ReadCommitted,
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpcc load --warehouses 10 --on local:tpcc\n  \
    dyno tpcc load --warehouses 1 --on etcd://127.0.0.1:2379\n  \
    dyno tpcc load --warehouses 1 --on 'postgres:host=/run/postgresql user=me dbname=tpcc'\n\n\
    A database that was loaded with the same numbers is left as it is; one with others is refused. A load that was\n\
    broken off goes on when it is started again.")]
pub struct TpccLoadArgs {
    /// Warehouses
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub warehouses: u32,
    #[command(flatten)]
    pub on: OnArgs,
    /// Equal seeds give equal rows
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Threads that make and send rows
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub loaders: usize,
    /// Print figures as JSON
    #[arg(long)]
    pub json: bool,
}

/// Which transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MixArg {
    /// All five, as the specification mixes them
    Full,
    /// New Order and Payment, half each
    NewOrderPayment,
}

/// How transactions go to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormArg {
    /// As a procedure, in one request
    OneShot,
    /// Operation by operation; those that can go together, in one request
    Batched,
    /// Operation by operation, each a request of its own
    Interactive,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpcc run --on local:tpcc\n  \
    dyno tpcc run --on dyno://127.0.0.1:7421 --form interactive --clients 8 --mix new-order-payment\n  \
    dyno tpcc run --on local:tpcc --paced --clients 100 --duration 5m\n\n\
    Exits 1, without a throughput, when a condition does not hold before or after the run.")]
pub struct TpccRunArgs {
    #[command(flatten)]
    pub on: OnArgs,
    /// Which transactions
    #[arg(long, value_enum, default_value = "full")]
    pub mix: MixArg,
    /// How they go to the engine
    #[arg(long, value_enum, default_value = "one-shot")]
    pub form: FormArg,
    /// How long
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub duration: Duration,
    /// Terminals, so transactions under way at most
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: u32,
    /// Threads that drive them in the one-shot form
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub threads: u32,
    /// Let terminals take the time that people need for keying and thinking
    #[arg(long)]
    pub paced: bool,
    /// Customers that are named by their last name, of a hundred: 60 by the specification, 40 in the original's program
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub by_last_name: u32,
    /// Equal seeds give equal inputs
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Tries of a transaction that meets others, at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub attempts: u32,
    /// Run so many transactions of each terminal, with a fixed time in them, instead of for a while: for checksums that
    /// can be compared
    #[arg(long, value_name = "N")]
    pub transactions: Option<u64>,
    /// Print figures as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpcc check --on local:tpcc\n\n\
    Nothing else may run on the database meanwhile. Exits 1 when a condition does not hold.")]
pub struct TpccCheckArgs {
    #[command(flatten)]
    pub on: OnArgs,
    /// Also pay once and give a payment up, to see that payments are atomic; this changes the database
    #[arg(long)]
    pub atomicity: bool,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

/// Numbers of processor cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

/// `1`, `2-9`, `0,2,4-6`.
pub fn cores(text: &str) -> Result<Cores, String> {
    let wrong = || format!("`{text}` is no list of cores, such as 1, 2-9 or 0,2,4");
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= 4_096 {
            return Err(wrong());
        }
        cores.extend(first..=last);
    }
    match cores
        .iter()
        .collect::<std::collections::BTreeSet<_>>()
        .len()
        == cores.len()
    {
        true => Ok(Cores(cores)),
        false => Err(format!("`{text}` names a core twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        assert_eq!(cores("1"), Ok(Cores(vec![1])));
        assert_eq!(cores("2-4,8"), Ok(Cores(vec![2, 3, 4, 8])));
        for wrong in ["", "a", "4-2", "1,1", "5000"] {
            assert!(cores(wrong).is_err(), "{wrong}");
        }
    }
}

//! `dyno tpcc ...` as it is written.

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::database::OnArgs;
use crate::units::duration;

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

//! The flags of `dyno tpcc ...`.

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::database::{GuaranteeArgs, OnArgs};
use crate::units::duration;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno tpcc load --warehouses 1 --on local:tpcc
  dyno tpcc run --on local:tpcc --mix full --duration 10s
  dyno tpcc check --on local:tpcc

The transactions are those of TPC-C but the figures are not: they are transactions a second by \
type, unaudited, and not comparable with published results.")]
pub struct TpccArgs {
    #[command(subcommand)]
    pub command: TpccCommand,
}

#[derive(Debug, Subcommand)]
pub enum TpccCommand {
    /// Load the initial population into a database
    Load(TpccLoadArgs),
    /// Run transactions, and check the consistency conditions before and after
    Run(TpccRunArgs),
    /// Check the twelve consistency conditions
    Check(TpccCheckArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno tpcc load --warehouses 10 --on local:tpcc
  dyno tpcc load --warehouses 1 --on etcd://127.0.0.1:2379
  dyno tpcc load --warehouses 1 --on 'postgres:host=/run/postgresql user=me dbname=tpcc'

A database that was loaded with the same warehouses and seed is left as it is; one with other \
values is refused. After an interruption, run the same command again to continue.")]
pub struct TpccLoadArgs {
    /// Load N warehouses
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub warehouses: u32,
    #[command(flatten)]
    pub on: OnArgs,
    #[command(flatten)]
    pub guarantees: GuaranteeArgs,
    /// Derive the rows from SEED
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Use N threads to make and send rows
    #[arg(long, alias = "loaders", value_name = "N", default_value_t = 2)]
    pub threads: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The mix of transaction types that terminals run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MixArg {
    /// All five types, mixed as the specification says
    Full,
    /// New Order and Payment, half each
    NewOrderPayment,
}

/// How transactions are sent to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormArg {
    /// As one procedure, in one request
    OneShot,
    /// Operation by operation, independent ones in one request
    Batched,
    /// Operation by operation, each in a request of its own
    Interactive,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno tpcc run --on local:tpcc
  dyno tpcc run --on dyno://127.0.0.1:7421 --form interactive --clients 8 --mix new-order-payment
  dyno tpcc run --on local:tpcc --paced --clients 100 --duration 5m

Exits 1, without a throughput, when a condition does not hold before or after the run.")]
pub struct TpccRunArgs {
    #[command(flatten)]
    pub on: OnArgs,
    #[command(flatten)]
    pub guarantees: GuaranteeArgs,
    /// Run the transactions of MIX
    #[arg(long, value_enum, value_name = "MIX", default_value = "full")]
    pub mix: MixArg,
    /// Send transactions to the engine as FORM
    #[arg(long, value_enum, value_name = "FORM", default_value = "one-shot")]
    pub form: FormArg,
    /// Run for TIME
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub duration: Duration,
    /// Run N terminals, each with one transaction at a time
    #[arg(long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: u32,
    /// Use N threads for the terminals, in the one-shot form
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub threads: u32,
    /// Let terminals wait for the keying and thinking times of the specification
    #[arg(long)]
    pub paced: bool,
    /// Look up N of a hundred customers by last name; the specification says 60, the original's
    /// program has 40
    #[arg(long, value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(0..=100))]
    pub by_last_name: u32,
    /// Derive the inputs from SEED
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Try a transaction that conflicts with others at most N times
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub attempts: u32,
    /// Run N transactions on each terminal instead of --duration, with a fixed time in their rows,
    /// so that checksums can be compared
    #[arg(long, value_name = "N")]
    pub transactions: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno tpcc check --on local:tpcc
  dyno tpcc check --on local:tpcc --atomicity --json

Run nothing else on the database meanwhile. Exits 1 when a condition does not hold.")]
pub struct TpccCheckArgs {
    #[command(flatten)]
    pub on: OnArgs,
    #[command(flatten)]
    pub guarantees: GuaranteeArgs,
    /// Also commit one payment and roll one back, to check that payments are atomic; this changes
    /// the database
    #[arg(long)]
    pub atomicity: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

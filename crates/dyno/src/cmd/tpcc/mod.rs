//! `dyno tpcc ...`: the transactions of TPC-C on whichever engine.

mod check;
mod load;
mod run;
mod told;

use anyhow::Context;
use dyno_pubsub_broker::serve::tls;
use dyno_rigs::txn::{OpenHow, open};
use dyno_suite::Stop;
use dyno_txn_api::Database;

use crate::args::{OnArgs, TpccArgs, TpccCommand};
use crate::exit::Exit;

pub fn run(args: &TpccArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        TpccCommand::Load(args) => load::run(args, stop),
        TpccCommand::Run(args) => run::run(args, stop),
        TpccCommand::Check(args) => check::run(args),
    }
}

/// Opens the database that was named.
pub fn on(args: &OnArgs) -> anyhow::Result<Box<dyn Database>> {
    open(&args.on, &how(args)?).with_context(|| format!("cannot open {}", args.on))
}

/// What the arguments say beside the address.
pub fn how(args: &OnArgs) -> anyhow::Result<OpenHow> {
    Ok(OpenHow {
        durability: args.durability,
        cores: args.cores.clone().map_or(Vec::new(), |cores| cores.0),
        memory_bytes: args.memory,
        token: super::txn::token(args.token_file.as_deref())?,
        tls: args.tls_ca.as_deref().map(tls::client).transpose()?,
        ring: !args.no_ring,
        isolation: args.isolation.into(),
    })
}

//! Databases as arguments name them, for every command of transactions.

use anyhow::Context;
use dyno_pubsub_broker::serve::tls;
use dyno_rigs::txn::{OpenHow, open as open_how};
use dyno_txn_api::Database;

use crate::args::OnArgs;
use crate::secrets;

/// Opens the database that was named.
pub fn open(args: &OnArgs) -> anyhow::Result<Box<dyn Database>> {
    open_how(&args.on, &how(args)?).with_context(|| format!("cannot open {}", args.on))
}

/// What the arguments say beside the address.
pub fn how(args: &OnArgs) -> anyhow::Result<OpenHow> {
    Ok(OpenHow {
        durability: args.durability,
        cores: args.cores.clone().map_or(Vec::new(), |cores| cores.0),
        memory_bytes: args.memory,
        token: secrets::token(args.token_file.as_deref())?,
        tls: args.tls_ca.as_deref().map(tls::client).transpose()?,
        ring: !args.no_ring,
        isolation: args.isolation.into(),
        ..OpenHow::default()
    })
}

//! Databases as arguments name them, for every command of transactions.

use anyhow::{Context, bail};
use dyno_rigs::txn::{OpenHow, open as open_how};
use dyno_serve::tls;
use dyno_txn_api::{Code, Database, Target};

use crate::args::OnArgs;
use crate::secrets;

/// Opens the database that was named, which must be there: a name that was mistyped makes nothing.
pub fn open(args: &OnArgs) -> anyhow::Result<Box<dyn Database>> {
    let how = OpenHow {
        create: false,
        ..how(args)?
    };
    match (open_how(&args.on, &how), &args.on) {
        (Err(error), Target::Local(path)) if error.kind() == Code::NotFound => bail!(
            "{}; each of these makes one: `dyno txn serve --data {path}`, `dyno txn shell --create --on local:{path}`, \
             `dyno tpcc load --warehouses 1 --on local:{path}`",
            error.text(),
            path = path.display()
        ),
        (opened, on) => opened.with_context(|| format!("cannot open {on}")),
    }
}

/// Opens the database that was named, or makes it.
pub fn open_or_create(args: &OnArgs) -> anyhow::Result<Box<dyn Database>> {
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

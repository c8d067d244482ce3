//! Databases as arguments name them, for every command of transactions.

use anyhow::{Context, bail};
use dyno_serve::tls;
use dyno_txn_api::{Code, Database, Target};
use dyno_txn_open::DatabaseOptions;

use crate::args::{GuaranteeArgs, OnArgs};
use crate::secrets;

/// Opens the database that the arguments name, which must exist: a mistyped name creates nothing.
pub fn open(args: &OnArgs, guarantees: &GuaranteeArgs) -> anyhow::Result<Box<dyn Database>> {
    open_with(args, guarantees, DatabaseOptions::default())
}

/// Opens the existing database with the procedures and functions of `base`.
pub fn open_with(
    args: &OnArgs,
    guarantees: &GuaranteeArgs,
    base: DatabaseOptions,
) -> anyhow::Result<Box<dyn Database>> {
    let options = DatabaseOptions {
        create: false,
        ..with_args(base, args, guarantees)?
    };
    // A local path may be mistyped, and creating a database there would hide the mistake. The error
    // therefore says how to make one on purpose.
    match (dyno_txn_open::open(&args.on, &options), &args.on) {
        (Err(error), Target::Local(path)) if error.kind() == Code::NotFound => bail!(
            "{}; each of these makes one: `dyno txn serve --data {path}`, `dyno txn shell --create --on local:{path}`, \
             `dyno tpcc load --warehouses 1 --on local:{path}`",
            error.text(),
            path = path.display()
        ),
        (opened, on) => opened.with_context(|| format!("cannot open {on}")),
    }
}

/// Opens the database that the arguments name, or creates it.
pub fn open_or_create(
    args: &OnArgs,
    guarantees: &GuaranteeArgs,
) -> anyhow::Result<Box<dyn Database>> {
    dyno_txn_open::open(&args.on, &options(args, guarantees)?)
        .with_context(|| format!("cannot open {}", args.on))
}

/// The options that the arguments give beside the address.
pub fn options(args: &OnArgs, guarantees: &GuaranteeArgs) -> anyhow::Result<DatabaseOptions> {
    with_args(DatabaseOptions::default(), args, guarantees)
}

fn with_args(
    base: DatabaseOptions,
    args: &OnArgs,
    guarantees: &GuaranteeArgs,
) -> anyhow::Result<DatabaseOptions> {
    Ok(DatabaseOptions {
        durability: guarantees.durability,
        cores: args.cores.clone().map_or(Vec::new(), |cores| cores.0),
        memory_bytes: args.memory,
        token: secrets::token(args.token_file.as_deref())?,
        tls: args.tls_ca.as_deref().map(tls::client).transpose()?,
        ring: !args.no_ring,
        isolation: guarantees.isolation.into(),
        ..base
    })
}

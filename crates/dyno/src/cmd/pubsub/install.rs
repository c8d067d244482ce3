//! `dyno pubsub install`: the schema and its functions into a database.

use dyno_pubsub::{Connection, Dsn};
use serde_json::json;

use crate::args::PubsubInstallArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &PubsubInstallArgs) -> anyhow::Result<Exit> {
    let dsn = Dsn::parse(&args.dsn)?;
    let installed = Connection::open(&dsn)?.install()?;
    let (from, to) = (installed.from, installed.to);
    terminal::print(&if args.json {
        serde_json::to_string_pretty(&json!({ "from": from, "to": to }))?
    } else if from == 0 {
        format!("the schema pubsub, version {to}, is in {dsn}")
    } else if from == to {
        format!(
            "the schema pubsub in {dsn} was at version {to} already; its functions are made anew"
        )
    } else {
        format!("the schema pubsub in {dsn} went from version {from} to {to}")
    })?;
    Ok(Exit::Done)
}

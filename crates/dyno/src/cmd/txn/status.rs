//! `dyno txn status`: what a database is.

use dyno_report::counted;
use serde_json::json;

use crate::args::{GuaranteeArgs, TxnStatusArgs};
use crate::databases;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &TxnStatusArgs) -> anyhow::Result<Exit> {
    let db = databases::open(&args.on, &GuaranteeArgs::default())?;
    let what = db.describe()?;
    let tables = db.tables()?;
    let stats = db.stats()?;
    if args.json {
        let tables = tables.iter().map(|table| {
            json!({
                "number": table.id.0,
                "name": table.def.name,
                "columns": table.def.columns.iter().map(|column| &column.name).collect::<Vec<_>>(),
                "indexes": table.def.indexes.iter().map(|index| &index.name).collect::<Vec<_>>(),
            })
        });
        let counters = stats
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)));
        terminal::print(&serde_json::to_string_pretty(&json!({
            "on": args.on.on.to_string(),
            "engine": what.engine,
            "isolation": what.isolation,
            "durability": what.durability,
            "partitions": what.partitions,
            "procedures": what.procedures,
            "tables": tables.collect::<Vec<_>>(),
            "counters": counters.collect::<serde_json::Map<_, _>>(),
        }))?)?;
        return Ok(Exit::Done);
    }
    let mut text = format!(
        "{}: {}, {}, acknowledged: {}, {}\n",
        args.on.on,
        what.engine,
        what.isolation,
        what.durability,
        counted(u64::from(what.partitions), "partition"),
    );
    let mut shown = terminal::table(&["table", "columns", "indexes"]);
    for table in &tables {
        shown.add_row([
            table.def.name.clone(),
            table.def.columns.len().to_string(),
            table.def.indexes.len().to_string(),
        ]);
    }
    text += &format!("{shown}\n");
    for (name, value) in stats {
        text += &format!("{name}: {value}\n");
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
}

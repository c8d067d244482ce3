//! `dyno tpcc check`: is the database what the transactions should have made of it?

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use dyno_report::counted;
use dyno_tpcc::Scale;
use dyno_tpcc::checks::{Violation, atomicity, checksum, consistency};
use dyno_tpcc::load;
use dyno_tpcc::schema::Tables;
use dyno_txn_api::Database;
use serde_json::json;

use crate::args::TpccCheckArgs;
use crate::databases;
use crate::exit::Exit;
use crate::progress::Spinner;
use crate::terminal;

pub fn run(args: &TpccCheckArgs) -> anyhow::Result<Exit> {
    let db = databases::open(&args.on, &args.guarantees)?;
    let (tables, population) = load::ready(&*db)?;
    let mut violations = conditions(&*db, &tables, &population.scale)?;
    let mut wrong: Vec<String> = violations.drain(..).map(|v| v.to_string()).collect();
    if args.atomicity {
        // A row of HISTORY that no terminal writes: all of theirs count from 1.
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        wrong.extend(atomicity(&*db, &tables, [now.as_nanos() as u64, 0])?);
    }
    let sum = checksum(&*db)?;
    terminal::print(&if args.json {
        serde_json::to_string_pretty(&json!({
            "on": args.on.on.to_string(),
            "warehouses": population.scale.warehouses,
            "rows": sum.rows,
            "checksum": format!("{:016x}", sum.sum),
            "holds": wrong.is_empty(),
            "violations": wrong,
        }))?
    } else if wrong.is_empty() {
        format!(
            "{}: the twelve conditions hold for {}; {sum}",
            args.on.on,
            counted(u64::from(population.scale.warehouses), "warehouse")
        )
    } else {
        wrong.join("\n")
    })?;
    Ok(if wrong.is_empty() {
        Exit::Done
    } else {
        Exit::No
    })
}

/// Checks the consistency conditions, with a spinner meanwhile.
pub fn conditions(
    db: &dyn Database,
    tables: &Tables,
    scale: &Scale,
) -> anyhow::Result<Vec<Violation>> {
    ensure!(scale.warehouses > 0, "a database without a warehouse");
    let spinner = Spinner::new("checking the consistency conditions");
    let found = consistency(db, tables, scale)?;
    spinner.done(if found.is_empty() {
        "the twelve consistency conditions hold"
    } else {
        "not all of the twelve consistency conditions hold"
    });
    Ok(found)
}

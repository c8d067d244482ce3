//! `dyno-sql tpch verify`: says whether the tables of a directory are those of the benchmark.

use std::io::Write;

use anyhow::{Result, bail};
use dyno_tpch::rules::Rule;
use dyno_tpch::{Generator, Scale, Table};
use serde::Serialize;

use super::Verdict;
use crate::args::tpch::TpchVerifyArgs;
use crate::tpch::checks::{self, Check, State};
use crate::tpch::open::{Tables, open};
use crate::tpch::same_rows;

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Report {
    scale_factor: f64,
    good: usize,
    broken: usize,
    unknown: usize,
    checks: Vec<Check>,
}

/// Checks the tables one after the other and prints a line for each check.
///
/// # Errors
/// The tables cannot be opened or read; the scale factor is unclear; Ctrl-C.
pub async fn run(args: TpchVerifyArgs, out: &mut dyn Write) -> Result<Verdict> {
    let limits = args.source.limits.limits();
    let tables = open(&args.directory, args.source.files, limits).await?;
    let scale = match args.source.sf {
        Some(scale) => scale,
        None => tables.scale().await?,
    };
    let checks = tokio::select! {
        checks = all(&args, &tables, scale, out) => checks?,
        // Dropping a query ends its threads and removes what it spilled to disk.
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    };
    let count =
        |wanted: fn(&State) -> bool| checks.iter().filter(|check| wanted(&check.state)).count();
    let report = Report {
        scale_factor: scale.factor(),
        good: count(|state| matches!(state, State::Good)),
        broken: count(|state| matches!(state, State::Broken { .. })),
        unknown: count(|state| matches!(state, State::Unknown { .. })),
        checks,
    };
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        writeln!(
            out,
            "scale factor {}: {} checks good, {} broken, {} not possible",
            report.scale_factor, report.good, report.broken, report.unknown
        )?;
    }
    out.flush()?;
    Ok(match report.broken {
        0 => Verdict::Good,
        _ => Verdict::Wrong,
    })
}

async fn all(
    args: &TpchVerifyArgs,
    tables: &Tables,
    scale: Scale,
    out: &mut dyn Write,
) -> Result<Vec<Check>> {
    let threads = args.source.limits.limits().threads;
    let generator = Generator::new(scale);
    let rules = Rule::all(&generator);
    let mut checks = Vec::new();
    for table in Table::ALL {
        if !args.tables.is_empty() && !args.tables.contains(&table) {
            continue;
        }
        if !tables.files.contains_key(&table) {
            checks.push(absent(table));
            show(args, checks.last(), out)?;
            continue;
        }
        checks.push(checks::count(tables, table, &generator).await?);
        show(args, checks.last(), out)?;
        let of_table: Vec<Rule> = rules
            .iter()
            .filter(|rule| rule.table == table)
            .cloned()
            .collect();
        for check in checks::rules(tables, table, &of_table).await? {
            show(args, Some(&check), out)?;
            checks.push(check);
        }
        checks.push(same_rows::check(tables, table, &generator, threads).await?);
        show(args, checks.last(), out)?;
    }
    Ok(checks)
}

fn absent(table: Table) -> Check {
    Check {
        table: table.name(),
        says: "the table is there".to_owned(),
        state: State::Broken {
            rows: None,
            found: vec![format!(
                "there is no file of it; leave it out with --tables"
            )],
        },
    }
}

/// Prints a check as soon as it is done, and what is wrong below it.
fn show(args: &TpchVerifyArgs, check: Option<&Check>, out: &mut dyn Write) -> Result<()> {
    let Some(check) = check.filter(|_| !args.json) else {
        return Ok(());
    };
    let (word, wrong) = match &check.state {
        State::Good => ("ok", String::new()),
        State::Unknown { reason } => ("unknown", format!(": {reason}")),
        State::Broken { rows: None, .. } => ("BROKEN", String::new()),
        State::Broken { rows: Some(1), .. } => ("BROKEN", ": 1 row is not so".to_owned()),
        State::Broken {
            rows: Some(rows), ..
        } => ("BROKEN", format!(": {rows} rows are not so")),
    };
    writeln!(out, "{word:8}{:9} {}{wrong}", check.table, check.says)?;
    if let State::Broken { found, .. } = &check.state {
        for line in found {
            writeln!(out, "{:18}{line}", "")?;
        }
    }
    out.flush()?;
    Ok(())
}

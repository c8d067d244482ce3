//! `dyno limits`: what this machine can do.

use dyno_machine::Limits;
use dyno_report::quantity;
use dyno_suite::Stop;

use crate::args::LimitsArgs;
use crate::exit::Exit;
use crate::{limits, places, terminal};

pub fn run(args: &LimitsArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let cache = places::cache(args.data_dir.as_deref())?;
    let found = limits::measure(args.size.size(), &cache.join("scratch-limits"), stop)?;
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&found.limits)?)?;
    } else {
        terminal::print(&text(&found))?;
    }
    for (name, reason) in &found.missing {
        eprintln!("not available: {name}: {reason}");
    }
    Ok(if stop.asked() {
        Exit::Failure
    } else {
        Exit::Done
    })
}

fn text(found: &Limits) -> String {
    let mut table = terminal::table(&[
        "limit",
        "median",
        "lowest",
        "highest",
        "n",
        "independent tool",
        "how",
    ]);
    for limit in &found.limits {
        let show = |value: f64| quantity(value, &limit.unit);
        let tool = match &limit.independent {
            Some((tool, value)) => format!("{} by {tool}", show(*value)),
            None => "not available".to_string(),
        };
        table.add_row([
            limit.name.clone(),
            show(limit.value),
            show(limit.low),
            show(limit.high),
            limit.n.to_string(),
            tool,
            limit.method.clone(),
        ]);
    }
    table.to_string()
}

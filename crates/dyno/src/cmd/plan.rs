//! `dyno plan SUITE...`: what a run would do.

use std::fs;

use anyhow::Context;
use dyno_suite::{Needs, Planned, Preparer};
use serde_json::json;

use crate::args::PlanArgs;
use crate::exit::Exit;
use crate::units::show_seconds;
use crate::{built_in, places, room, systems, terminal};

pub fn run(args: &PlanArgs) -> anyhow::Result<Exit> {
    let cache = places::cache(args.select.data_dir.as_deref())?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    let room = room::of(&cache, args.select.max_disk);
    let mut fits = Exit::Done;
    let mut shown = Vec::new();
    for suite in built_in::suites(&args.select)? {
        let chosen = systems::choose(&suite, &args.select)?;
        let planned = Planned::new(&suite, args.select.size.size(), &chosen.peers)?;
        let preparer = Preparer::new(&cache.join("data"), &planned, &chosen.systems);
        let needs = planned.needs(&|data, system| preparer.ready(data, system));
        if args.json {
            shown.push(json!({
                "plan": planned.plan,
                "samples": planned.samples(),
                "prepare_s": needs.prepare_s,
                "run_s": needs.run_s,
                "budget_s": planned.budget_s,
                "disk_bytes": needs.disk_bytes,
                "memory_bytes": needs.memory_bytes,
            }));
        } else {
            terminal::print(&text(&planned, &preparer, &needs))?;
        }
        for system in chosen.systems.iter().filter(|s| s.missing.is_some()) {
            eprintln!(
                "{}: {}",
                system.name,
                system.missing.as_deref().unwrap_or_default()
            );
        }
        if let Err(error) = needs.check(&room) {
            eprintln!("{}: {error}", suite.name);
            fits = Exit::No;
        }
    }
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&shown)?)?;
    }
    Ok(fits)
}

fn text(planned: &Planned, preparer: &Preparer, needs: &Needs) -> String {
    let mut cases = terminal::table(&[
        "case",
        "systems",
        "repeats",
        "one invocation",
        "in all",
        "limit",
    ]);
    for (case, estimate) in planned.plan.cases.iter().zip(&planned.estimates) {
        let one: Vec<String> = estimate
            .invocation_s
            .iter()
            .map(|s| show_seconds(*s))
            .collect();
        let control = if case.control { ", control" } else { "" };
        cases.add_row([
            case.name.clone(),
            format!("{}{control}", case.systems.join(", ")),
            case.repeats.to_string(),
            one.join(", "),
            show_seconds(estimate.total_s),
            case.limit
                .clone()
                .unwrap_or_else(|| "none stated".to_string()),
        ]);
    }
    let mut data = terminal::table(&["data", "made by", "state"]);
    for section in &planned.data {
        for system in &section.systems {
            let ready = preparer.ready(&section.name, system);
            let state = if ready { "ready" } else { "to be made" };
            data.add_row([section.name.as_str(), system, state]);
        }
    }
    format!(
        "{}: {}\n{cases}\n{data}\n{} timed invocations, about {} after {} of preparation; no block \
         starts after {}.\nIt needs {:.1} GB of disk and {:.1} GB of memory.",
        planned.plan.suite,
        planned.plan.title,
        planned.samples(),
        show_seconds(needs.run_s),
        show_seconds(needs.prepare_s),
        show_seconds(planned.budget_s),
        needs.disk_bytes / 1e9,
        needs.memory_bytes / 1e9,
    )
}

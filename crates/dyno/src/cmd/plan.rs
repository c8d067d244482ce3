//! `dyno plan SUITE...`: what a run would do.

use std::collections::BTreeMap;

use dyno_suite::{Needs, Planned, Preparer, System, show_bytes};
use serde_json::json;

use crate::args::PlanArgs;
use crate::exit::Exit;
use crate::systems::{self, Chosen};
use crate::times::Times;
use crate::units::show_seconds;
use crate::{built_in, places, resources, session, terminal};

pub fn run(args: &PlanArgs) -> anyhow::Result<Exit> {
    if args.select.suites.is_empty() && !args.json {
        terminal::print(&built_in::listed(&args.select)?)?;
        return Ok(Exit::Done);
    }
    let cache = places::cache(args.select.data_dir.as_deref())?;
    let data = cache.join("data");
    let size = args.select.size.size();
    let resources = resources::available(&cache, args.select.max_disk);
    let mut fits = Exit::Done;
    let mut shown = Vec::new();
    for suite in built_in::suites(&args.select)? {
        let chosen = systems::choose(&suite, args.select.peers.then_some(&args.select.peers_from))?;
        let mut planned = chosen.plan(&suite, size)?;
        let corrected = Times::read(&cache).correct(&mut planned);
        let preparer = Preparer::new(&data, &planned, &chosen.systems);
        let absent = absent(&planned, &chosen);
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
                "absent": absent,
                "cases_with_measured_times": corrected,
            }));
        } else {
            terminal::print(&text(&planned, &preparer, &needs, &absent))?;
            if corrected > 0 {
                let all = planned.plan.cases.len();
                let text =
                    format!("Of {corrected} of {all} cases the time was measured here before.");
                terminal::print(&text)?;
            }
        }
        // A suite that does not fit is reported, and the others are still planned: a plan is asked
        // for to see all of them.
        if let Err(error) = resources::check(&needs, &resources, &suite, &chosen, (size, &data)) {
            eprintln!("{}: {error}", suite.name);
            fits = Exit::No;
        }
    }
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&shown)?)?;
    }
    Ok(fits)
}

/// What a run would lack, and why: peers that are not installed, and the SQL engine if a case needs
/// it.
fn absent(planned: &Planned, chosen: &Chosen) -> BTreeMap<String, String> {
    let missing = |system: &System| Some((system.name.clone(), system.missing.clone()?));
    let mut absent: BTreeMap<_, _> = chosen.systems.iter().filter_map(missing).collect();
    if let Some((cases, reason)) = session::lacking_sql(planned) {
        absent.insert(
            "dyno-sql".to_owned(),
            format!("case {} needs it; {reason}", cases[0]),
        );
    }
    let missing = session::missing(planned);
    match missing.first() {
        Some((_, reason)) if missing.len() == planned.plan.cases.len() => {
            absent.insert(planned.plan.suite.clone(), reason.clone());
        }
        _ => {
            let cases = missing.into_iter();
            absent.extend(cases.map(|(case, reason)| (format!("case {case}"), reason)));
        }
    }
    absent
}

fn text(
    planned: &Planned,
    preparer: &Preparer,
    needs: &Needs,
    absent: &BTreeMap<String, String>,
) -> String {
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
                .unwrap_or_else(|| "not known".to_string()),
        ]);
    }
    let tables = tables(planned);
    let mut data = terminal::table(&["data", "made by", "state"]);
    for section in &planned.data {
        for system in &section.systems {
            let ready = preparer.ready(&section.name, system);
            let state = if ready { "ready" } else { "to be made" };
            data.add_row([section.name.as_str(), system, state]);
        }
    }
    let absent: String = absent
        .iter()
        .map(|(name, why)| format!("Takes no part: {name}: {why}.\n"))
        .collect();
    let left_out = planned.plan.left_out.text(planned.plan.size);
    let left_out = left_out.map_or_else(String::new, |text| {
        format!("{}; --case NAME runs one whole.\n", capitalised(&text))
    });
    format!(
        "{}: {}\n{cases}\n{tables}\n{data}\n{left_out}{absent}{} timed invocations, about {} after {} of preparation; no block \
         starts after {}.\nIt needs {} of disk and {} of memory.",
        planned.plan.suite,
        planned.plan.title,
        planned.samples(),
        show_seconds(needs.run_s),
        show_seconds(needs.prepare_s),
        show_seconds(planned.budget_s),
        show_bytes(needs.disk_bytes),
        show_bytes(needs.memory_bytes),
    )
}

/// The tables that the report will have, each with the time of the cases that it is made of. A case
/// may be part of several, so the times add up to more than the run.
fn tables(planned: &Planned) -> comfy_table::Table {
    let mut tables = terminal::table(&["table of the report", "cases", "in all"]);
    for table in &planned.plan.tables {
        let mut names: Vec<&str> = table.rows.iter().map(|row| row.case.as_str()).collect();
        // Rows of one case stand side by side, one for each system.
        names.dedup();
        let cases = planned.plan.cases.iter().zip(&planned.estimates);
        let of_table = cases.filter(|(case, _)| names.contains(&case.name.as_str()));
        let total_s: f64 = of_table.map(|(_, estimate)| estimate.total_s).sum();
        let (cases, total) = if names.is_empty() {
            ("not at this size".to_owned(), String::new())
        } else {
            (names.join(", "), show_seconds(total_s))
        };
        tables.add_row([table.title.clone(), cases, total]);
    }
    tables
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

//! `dyno pages check`: the store against a model of it, and against SIGKILL.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use dyno_pages::check::{self, Outcome, Plan, Soak, Window};
use dyno_report::counted;
use dyno_suite::Stop;
use serde_json::{Value, json};

use crate::args::PagesCheckArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &PagesCheckArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let own = env::current_exe().context("cannot find this program's own file")?;
    let plan = Plan {
        seed: args.seed.unwrap_or_else(drawn),
        steps: args.steps,
        kills: args.kills,
        life: args.life,
        share: args.share,
        soak: args.soak.unwrap_or_default(),
        job: [own.into(), "pages".into(), "check-job".into()].into(),
    };
    let seed = plan.seed;
    let outcome = check::run(&plan, &|| stop.asked())
        .with_context(|| format!("seed {seed}: the check came to no judgement"))?;
    let text = if args.json {
        serde_json::to_string_pretty(&json!({
            "seed": seed,
            "steps": outcome.steps,
            "refused": outcome.refused,
            "kills": outcome.kills,
            "acknowledged": outcome.acknowledged,
            "unlocked": outcome.unlocked,
            "written_back": outcome.written_back,
            "soak": windows_of(&outcome.soak),
            "broken": outcome.broken,
            "holds": outcome.holds(),
        }))?
    } else {
        as_text(seed, &outcome)
    };
    terminal::print(&text)?;
    Ok(if outcome.holds() {
        Exit::Done
    } else {
        Exit::No
    })
}

/// Runs a child of the check, which writes until it is killed.
pub fn job() -> anyhow::Result<Exit> {
    check::job()?;
    Ok(Exit::Done)
}

fn windows_of(soak: &Soak) -> Vec<Value> {
    let as_json = |window: &Window| {
        json!({
            "calls": window.calls,
            "p99_ns": window.p99_ns,
            "page_bytes": window.page_bytes,
            "store_bytes": window.store_bytes,
            "resident_bytes": window.resident_bytes,
        })
    };
    soak.windows.iter().map(as_json).collect()
}

fn drawn() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_millis() as u64 % 1_000_000)
}

fn as_text(seed: u64, outcome: &Outcome) -> String {
    let mut lines = vec![
        format!(
            "seed {seed}: {} beside the model, {} refused for want of space",
            counted(outcome.steps, "step"),
            counted(outcome.refused, "write"),
        ),
        format!(
            "{} after {}; {} of dead threads opened",
            counted(outcome.kills.into(), "kill"),
            counted(outcome.acknowledged, "acknowledged write"),
            counted(outcome.unlocked, "lock"),
        ),
    ];
    if !outcome.soak.windows.is_empty() {
        let soak = &outcome.soak;
        let calls: u64 = soak.windows.iter().map(|window| window.calls).sum();
        let (memory, memory_late) = soak.early_and_late(Window::store_per_thousand);
        let (beside, beside_late) = soak.early_and_late(|window| window.beside_bytes() >> 10);
        let (p99, p99_late) = soak.early_and_late(|window| window.p99_ns);
        let judged = if soak.judged {
            ""
        } else {
            " (too short to be judged)"
        };
        lines.push(format!(
            "soak: {calls} calls; early on and late: {memory} and {memory_late} bytes of memory for 1,000 bytes of pages, \
             {beside} and {beside_late} KiB beside, p99 {p99} and {p99_late} ns{judged}"
        ));
    }
    lines.extend(outcome.broken.iter().map(|what| format!("broken: {what}")));
    lines.push(if outcome.holds() {
        "every rule holds".to_string()
    } else {
        "a rule is broken".to_string()
    });
    lines.join("\n")
}

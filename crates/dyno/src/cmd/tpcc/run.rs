//! `dyno tpcc run`: transactions for a while, between two checks.

use std::time::{SystemTime, UNIX_EPOCH};

use dyno_rigs::tpcc::measure;
use dyno_suite::Stop;
use dyno_tpcc::Scale;
use dyno_tpcc::drive::{Form, Plan, Until};
use dyno_tpcc::input::{Draw, Mix};
use dyno_tpcc::load;
use dyno_tpcc::random::Skew;

use super::check::conditions;
use super::told;
use crate::args::{FormArg, MixArg, TpccRunArgs};
use crate::databases;
use crate::exit::Exit;
use crate::terminal;

/// The time in inputs of runs that are to be compared: 2026-01-02.
const FIXED_MS: i64 = 1_767_312_000_000;

pub fn run(args: &TpccRunArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let db = databases::open(&args.on)?;
    let (tables, population) = load::ready(&*db)?;
    let before = conditions(&*db, &tables, &population.scale)?;
    if !before.is_empty() {
        terminal::print(&told::wrong("before the run", &before))?;
        return Ok(Exit::No);
    }
    let plan = plan(args, population.scale, population.seed);
    let measured = measure(&*db, &tables, &plan, stop.flag())?;
    if let Some(error) = &measured.cut_short {
        terminal::print(&told::report(args, &measured)?)?;
        anyhow::bail!("the engine was lost in mid-run, so the figures are incomplete: {error}");
    }
    let after = conditions(&*db, &tables, &population.scale)?;
    if !after.is_empty() {
        terminal::print(&told::wrong("after the run", &after))?;
        return Ok(Exit::No);
    }
    terminal::print(&told::report(args, &measured)?)?;
    Ok(Exit::Done)
}

fn plan(args: &TpccRunArgs, scale: Scale, loaded_with: u64) -> Plan {
    Plan {
        draw: Draw {
            scale,
            mix: match args.mix {
                MixArg::Full => Mix::Full,
                MixArg::NewOrderPayment => Mix::NewOrderPayment,
            },
            by_last_name: args.by_last_name,
            skew: Skew::of_run(args.seed, Skew::of_load(loaded_with)),
        },
        form: match args.form {
            FormArg::OneShot => Form::OneShot,
            FormArg::Batched => Form::Batched,
            FormArg::Interactive => Form::Interactive,
        },
        clients: args.clients,
        threads: args.threads,
        until: match args.transactions {
            Some(count) => Until::Transactions(count),
            None => Until::Elapsed(args.duration),
        },
        paced: args.paced,
        seed: args.seed,
        run: run_number(args),
        attempts: args.attempts,
        entered_ms: args.transactions.map(|_| FIXED_MS),
    }
}

/// What tells this run from others on the same database; the same for runs that are to be compared.
fn run_number(args: &TpccRunArgs) -> u64 {
    match args.transactions {
        Some(_) => args.seed,
        None => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.map_or(args.seed, |now| now.as_nanos() as u64)
        }
    }
}

//! `dyno tpcc run`: transactions for some time, with a check before and after.

use std::time::{SystemTime, UNIX_EPOCH};

use dyno_rigs::tpcc::{database_options, measure};
use dyno_suite::Stop;
use dyno_tpcc::Scale;
use dyno_tpcc::drive::{Form, Plan, Until};
use dyno_tpcc::input::{Draw, Mix};
use dyno_tpcc::load::{self, paid};
use dyno_tpcc::random::{Random, Skew};
use dyno_txn_api::{Code, Error};

use super::check::conditions;
use super::output;
use crate::args::{FormArg, MixArg, TpccRunArgs};
use crate::databases;
use crate::exit::Exit;
use crate::terminal;

/// The entry time in the inputs of runs that are compared: 2026-01-02.
const FIXED_MS: i64 = 1_767_312_000_000;

pub fn run(args: &TpccRunArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let db = databases::open_with(&args.on, &args.guarantees, database_options()?)?;
    let (tables, population) = load::ready(&*db)?;
    let before = conditions(&*db, &tables, &population.scale)?;
    // A database that breaks a condition before the run would break it after the run too, and the
    // transactions would be blamed.
    if !before.is_empty() {
        terminal::print(&output::wrong("before the run", &before))?;
        return Ok(Exit::No);
    }
    let run = run_number(args, paid(&*db, &tables)?);
    let plan = plan(args, population.scale, population.seed, run);
    let measured = measure(&*db, &tables, &plan, stop.flag())?;
    // The figures are printed although they cover a part of the run, marked as incomplete, because
    // a run of an hour that ended after 59 minutes still tells something.
    if let Some(error) = &measured.cut_short {
        terminal::print(&output::report(args, &measured)?)?;
        anyhow::bail!("{}, so the figures are incomplete: {error}", ended(error));
    }
    let after = conditions(&*db, &tables, &population.scale)?;
    if !after.is_empty() {
        terminal::print(&output::wrong("after the run", &after))?;
        return Ok(Exit::No);
    }
    terminal::print(&output::report(args, &measured)?)?;
    Ok(Exit::Done)
}

/// What an error that ended a run says about the engine.
fn ended(error: &Error) -> &'static str {
    match error.kind() {
        Code::Unavailable => "the engine was lost in mid-run",
        Code::MemoryFull => "the engine's memory was full in mid-run",
        _ => "a transaction failed in mid-run in a way that no repetition mends",
    }
}

fn plan(args: &TpccRunArgs, scale: Scale, loaded_with: u64, run: u64) -> Plan {
    Plan {
        draw: Draw {
            scale,
            mix: match args.mix {
                MixArg::Full => Mix::Full,
                MixArg::NewOrderPayment => Mix::NewOrderPayment,
            },
            by_last_name: args.by_last_name,
            skew: Skew::for_run(args.seed, Skew::for_load(loaded_with)),
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
        run,
        attempts: args.attempts,
        entered_ms: args.transactions.map(|_| FIXED_MS),
    }
}

/// A number for this run, which is part of the keys of HISTORY. It must differ between runs on one
/// database, and be equal for runs that are compared, which begin with equal databases. The sum
/// `paid` so far does both: each payment adds to it, so no later run begins with the same sum.
fn run_number(args: &TpccRunArgs, paid: u64) -> u64 {
    match args.transactions {
        Some(_) => Random::stream(args.seed, &[0x4B, paid]).bits(),
        None => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.map_or(args.seed, |now| now.as_nanos() as u64)
        }
    }
}

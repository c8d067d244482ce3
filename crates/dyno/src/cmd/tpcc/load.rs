//! `dyno tpcc load`: the initial population.

use std::sync::atomic::Ordering;
use std::time::Instant;

use dyno_report::{counted, quantity};
use dyno_suite::Stop;
use dyno_tpcc::load::{self, Loaded, Progress};
use dyno_tpcc::{Layout, Population, Scale};
use serde_json::json;

use crate::args::TpccLoadArgs;
use crate::databases;
use crate::exit::Exit;
use crate::progress::WorkBar;
use crate::terminal;

pub fn run(args: &TpccLoadArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let db = databases::open_or_create(&args.on, &args.guarantees)?;
    let population = Population {
        scale: Scale::specified(args.warehouses),
        seed: args.seed,
    };
    let began = Instant::now();
    let progress = Progress::default();
    let layout = Layout::for_target(&args.on.on);
    let bar = WorkBar::new(load::rows_of(&population.scale, layout), "rows");
    let loaded = bar.follow(
        || load::load(&*db, layout, population, args.threads, &progress),
        |bar| {
            bar.at(progress.rows.load(Ordering::Relaxed));
            // The load looks at the flag between transactions, so what is loaded is whole and the
            // same command continues it.
            if stop.asked() {
                progress.stop.store(true, Ordering::Relaxed);
            }
        },
    )??;
    let seconds = began.elapsed().as_secs_f64();
    let memory = db
        .stats()?
        .into_iter()
        .find(|(name, _)| name == "memory_bytes");
    let memory = memory.map(|(_, bytes)| bytes as f64 / f64::from(args.warehouses));
    terminal::print(&if args.json {
        as_json(args, loaded, seconds, memory)?
    } else {
        as_text(args, loaded, seconds, memory)
    })?;
    Ok(Exit::Done)
}

fn as_text(args: &TpccLoadArgs, loaded: Loaded, seconds: f64, memory: Option<f64>) -> String {
    let warehouses = counted(u64::from(args.warehouses), "warehouse");
    if loaded.rows == 0 {
        return format!("{}: {warehouses} loaded already", args.on.on);
    }
    let mut text = format!(
        "{}: {warehouses}, {} rows, {} in {seconds:.1} s",
        args.on.on,
        loaded.rows,
        quantity(loaded.bytes as f64, "B"),
    );
    if let Some(memory) = memory {
        text += &format!(", {} of memory for each", quantity(memory, "B"));
    }
    text
}

fn as_json(
    args: &TpccLoadArgs,
    loaded: Loaded,
    seconds: f64,
    memory: Option<f64>,
) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&json!({
        "on": args.on.on.to_string(),
        "warehouses": args.warehouses,
        "seed": args.seed,
        "rows": loaded.rows,
        "bytes": loaded.bytes,
        "seconds": seconds,
        "memory_bytes_per_warehouse": memory,
    }))?)
}

//! `dyno txn check soak`: a server under a steady load for a long time.

use std::fs;
use std::path::Path;

use anyhow::Context;
use dyno_suite::Stop;
use dyno_txn_check::soak::{self, Options, Soaked};
use serde_json::json;

use super::{connect, drawn, own_and_folder, server, until_asked};
use crate::args::TxnCheckSoakArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &TxnCheckSoakArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let (own, folder) = own_and_folder()?;
    let seed = args.seed.unwrap_or_else(drawn);
    let ran = until_asked(stop, |stop| {
        soak::run(&Options {
            start: &|data: &Path| server(&own, data),
            connect: &connect,
            folder: &folder,
            length: args.duration,
            seed,
            clients: args.clients,
            rate: args.rate,
            stop,
            after_minute: &|minute, committed, p99_ms| {
                if !args.json {
                    eprintln!("minute {minute}: {committed} committed, p99 {p99_ms:.1} ms");
                }
            },
        })
    });
    let soaked = ran.with_context(|| {
        let folder = folder.display();
        format!("seed {seed}: the soak came to no judgement; what it left is in {folder}")
    })?;
    let holds = soaked.holds();
    if holds {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let text = if args.json {
        as_json(&soaked, seed)?
    } else {
        as_text(&soaked, seed, &folder)
    };
    terminal::print(&text)?;
    Ok(if holds { Exit::Done } else { Exit::No })
}

fn as_json(soaked: &Soaked, seed: u64) -> anyhow::Result<String> {
    let judgement = &soaked.judgement;
    Ok(serde_json::to_string_pretty(&json!({
        "seed": seed,
        "seconds": soaked.seconds,
        "committed": judgement.committed,
        "failed": judgement.failed,
        "unknown": judgement.unknown,
        "audits": judgement.audits,
        "stamps_judged": judgement.replayed,
        "holds": soaked.holds(),
        "flatness_judged": soaked.is_long(),
        "trends": soaked.trends,
        "p99_ms": soaked.p99_ms,
        "samples": soaked.samples,
        "broken": judgement.verdict.broken,
        "violations": judgement.verdict.violations,
        "history": soaked.history,
    }))?)
}

fn as_text(soaked: &Soaked, seed: u64, folder: &Path) -> String {
    let judgement = &soaked.judgement;
    let mut lines = vec![format!(
        "seed {seed}, {:.0} s: {} transactions committed, {} failed, {} unknown; {} snapshots of all accounts",
        soaked.seconds, judgement.committed, judgement.failed, judgement.unknown, judgement.audits
    )];
    lines.extend(soaked.trends.iter().map(|trend| {
        let judged = if trend.flat { "flat" } else { "grew" };
        let (name, begin, end) = (&trend.name, trend.begin, trend.end);
        format!("{judged}: {name}: {begin:.1} in the first third, {end:.1} in the last")
    }));
    if !soaked.is_long() {
        lines.push("left out: flatness: a soak is judged from ten minutes on".to_owned());
    }
    let violations = judgement.verdict.violations.iter();
    lines.extend(violations.map(|v| format!("broken: {:?}: {v}", v.rule)));
    lines.push(match (soaked.holds(), judgement.verdict.holds()) {
        (true, _) => "every rule holds".to_owned(),
        (false, true) => "no rule is broken, but something grew".to_owned(),
        (false, false) => format!(
            "a rule is broken; the history and the server's files are in {}",
            folder.display()
        ),
    });
    lines.join("\n")
}

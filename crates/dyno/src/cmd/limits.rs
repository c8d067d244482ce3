//! `dyno limits`: what this machine can do.

use std::net::ToSocketAddrs;

use anyhow::Context;
use dyno_machine::{Limits, LinkOptions};
use dyno_record::Size;
use dyno_report::quantity;
use dyno_serve::Token;
use dyno_suite::{Clock, Stop, SystemClock};

use crate::args::LimitsArgs;
use crate::exit::Exit;
use crate::{limits, places, secrets, terminal};

/// The note on figures of the smallest size.
const TINY: &str = "--tiny shows that every limit can be measured here; its figures are too short to mean anything, \
                    so take --quick or --full for them";

pub fn run(args: &LimitsArgs, stop: &Stop) -> anyhow::Result<Exit> {
    if let Some(address) = &args.link {
        return link(args, address);
    }
    let cache = places::cache(args.data_dir.as_deref())?;
    // A directory that is made for the measurement would be on another disk than the one that was
    // meant.
    if let Some(dir) = &args.data_dir {
        anyhow::ensure!(
            dir.is_dir(),
            "--data-dir {}: no such directory",
            dir.display()
        );
    }
    let size = args.size.size();
    let found = limits::measure(size, &cache, stop)?;
    if size == Size::Tiny {
        eprintln!("{TINY}");
    }
    show(args, &found)?;
    for (name, reason) in &found.missing {
        eprintln!("not available: {name}: {reason}");
    }
    // Limits that were measured before Ctrl-C are printed, but a script must not take them for all.
    Ok(if stop.asked() {
        Exit::Failure
    } else {
        Exit::Done
    })
}

/// Measures the link to another machine, and nothing of this one.
fn link(args: &LimitsArgs, address: &str) -> anyhow::Result<Exit> {
    let wrong = || format!("--link {address}: write HOST:PORT");
    let mut addresses = address.to_socket_addrs().with_context(wrong)?;
    let token = secrets::token(args.token_file.as_deref())?;
    let clock = SystemClock::default();
    let limits = dyno_machine::link(&LinkOptions {
        address: addresses.next().with_context(wrong)?,
        token: token.as_deref().map(Token::new).transpose()?,
        size: args.size.size(),
        now_utc: &|| clock.utc(),
    })?;
    let missing = Vec::new();
    show(args, &Limits { limits, missing })?;
    Ok(Exit::Done)
}

fn show(args: &LimitsArgs, found: &Limits) -> anyhow::Result<()> {
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&found.limits)?)?;
    } else {
        terminal::print(&text(found))?;
    }
    Ok(())
}

/// A table of the figures, and below it how each was measured: those sentences are too long for a
/// column beside six others.
fn text(found: &Limits) -> String {
    let mut table = terminal::table(&[
        "limit",
        "median",
        "lowest",
        "highest",
        "n",
        "the other method",
    ]);
    for limit in &found.limits {
        let show = |value: f64| quantity(value, &limit.unit);
        let other = match &limit.independent {
            Some((name, value)) => format!("{} by {name}", show(*value)),
            None => "not available".to_string(),
        };
        table.add_row([
            limit.name.clone(),
            show(limit.value),
            show(limit.low),
            show(limit.high),
            limit.n.to_string(),
            other,
        ]);
    }
    let methods = found.limits.iter();
    let methods: Vec<String> = methods
        .map(|limit| format!("{}: {}", limit.name, limit.method))
        .collect();
    format!("{table}\n\n{}", terminal::wrapped(&methods.join("\n")))
}

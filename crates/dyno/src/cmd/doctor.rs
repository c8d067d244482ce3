//! `dyno doctor`: what this machine is and what will spoil a measurement on it.

mod noise;
mod pubsub;

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use dyno_machine::{Root, machine};
use dyno_record::Machine;

use crate::args::{AdvisedEngine, DoctorArgs};
use crate::exit::Exit;
use crate::terminal;

/// Between two readings of the processor's counters.
const PAUSE: Duration = Duration::from_millis(500);

pub fn run(args: &DoctorArgs) -> anyhow::Result<Exit> {
    if let Some(AdvisedEngine::Pubsub) = args.engine {
        return pubsub::run(args);
    }
    if args.noise {
        return noise::run(args);
    }
    let path = args.data_dir.as_deref().unwrap_or(Path::new("."));
    // A mistyped directory is a mistake of the user and not a fault of the machine, which is what
    // the checks would report it as.
    path.metadata()
        .with_context(|| format!("{}", path.display()))?;
    let seen = machine(&Root::system(), path, &mut || thread::sleep(PAUSE));
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&seen)?)?;
    } else {
        terminal::print(&text(&seen))?;
    }
    let spoilt = seen.checks.iter().any(|check| check.state == "spoils");
    Ok(if spoilt { Exit::No } else { Exit::Done })
}

fn text(machine: &Machine) -> String {
    let width = machine
        .facts
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    let mut lines = vec!["This machine".to_string()];
    for (name, value) in &machine.facts {
        lines.push(format!("  {name:width$}  {value}"));
    }
    lines.push(format!(
        "  {:width$}  {}",
        "fingerprint", machine.fingerprint
    ));
    for (state, heading) in [
        ("spoils", "What will spoil a measurement"),
        ("unknown", "What could not be checked"),
        ("good", "What is well"),
    ] {
        let checks: Vec<_> = machine.checks.iter().filter(|c| c.state == state).collect();
        if checks.is_empty() {
            continue;
        }
        lines.push(String::new());
        lines.push(heading.to_string());
        for check in checks {
            lines.push(format!("  {}: {}", check.name, check.seen));
            if state != "good" {
                lines.extend(
                    [&check.cost, &check.mend]
                        .iter()
                        .filter(|t| !t.is_empty())
                        .map(|t| format!("      {t}")),
                );
            }
        }
    }
    lines.join("\n")
}

//! `dyno pubsub check`: kills servers, brokers and clients under load, and judges what they saw.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use dyno_pubsub_check::child;
use dyno_pubsub_check::run::{self, Options, Outcome};
use dyno_suite::Stop;

use crate::args::PubsubCheckArgs;
use crate::exit::Exit;
use crate::terminal;

/// Between two looks whether to stop.
const TICK: Duration = Duration::from_millis(100);

/// What this program is called with to be one of the check's clients; the job follows.
pub const CLIENT: &str = "check-client";

pub fn run(args: &PubsubCheckArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let seed = args.seed.unwrap_or_else(some_seed);
    let program = env::current_exe().context("cannot find this program's own path")?;
    let folder = folder(seed)?;
    let words = [program.display().to_string().as_str(), "pubsub", CLIENT].map(str::to_owned);
    let kills = if args.soak.is_some() { 0 } else { args.kills };
    let mut options = Options::new(words.into(), folder.clone(), kills as usize, seed);
    options.mode = args.on.mode();
    options.nodes = args.nodes as usize;
    options.soak = args.soak;
    options.narrate = !args.json;
    eprintln!("seed {seed}");
    let outcome = watched(&options, stop);
    if outcome.as_ref().is_ok_and(|outcome| outcome.holds) {
        remove(&folder)?;
    } else {
        eprintln!("what is left lies in {}", folder.display());
    }
    let outcome = outcome?;
    terminal::print(&match args.json {
        true => serde_json::to_string_pretty(&outcome)?,
        false => as_text(&outcome),
    })?;
    Ok(if outcome.holds { Exit::Done } else { Exit::No })
}

/// One client of a check, until its standard input ends.
pub fn client(job: &str) -> anyhow::Result<Exit> {
    child::run(job)?;
    Ok(Exit::Done)
}

/// Runs it; when somebody asks to stop no further blow falls, and what has happened is judged.
fn watched(options: &Options, stop: &Stop) -> anyhow::Result<Outcome> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if stop.asked() {
                    options.stop.store(true, Ordering::Relaxed);
                }
                thread::park_timeout(TICK);
            }
        });
        let outcome = run::run(options);
        done.store(true, Ordering::Relaxed);
        Ok(outcome?)
    })
}

fn some_seed() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::from(since_1970.unwrap_or_default().subsec_nanos())
}

/// A new folder that the server's user can enter.
fn folder(seed: u64) -> anyhow::Result<PathBuf> {
    let name = format!("dyno-check-{}-{seed}", std::process::id());
    let folder = env::temp_dir().join(name);
    let failed = || anyhow!("cannot make {}", folder.display());
    fs::create_dir(&folder).with_context(failed)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).with_context(failed)?;
    Ok(folder)
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

fn as_text(outcome: &Outcome) -> String {
    let verdict = &outcome.verdict;
    let mut lines = vec![format!(
        "{} blows in {:.0} s, {} connections cut in COMMIT; {} messages acknowledged, {} refused, {} unknown; \
         {} delivered, {} of them again; longest stall {:.0} ms",
        outcome.kills(),
        outcome.seconds,
        outcome.cut_in_commit,
        verdict.acknowledged,
        verdict.failed,
        verdict.unknown,
        verdict.delivered,
        verdict.redelivered,
        outcome.stall_longest_ms,
    )];
    lines.extend(verdict.violations.iter().map(ToString::to_string));
    lines.extend(outcome.troubles.iter().cloned());
    let left_out = outcome.left_out.iter();
    lines.extend(left_out.map(|what| format!("left out: {what}")));
    if let Some(soak) = &outcome.soak {
        lines.extend(soak.trends.iter().map(|trend| {
            let judged = if trend.flat { "flat" } else { "GREW" };
            format!("{}: {} to {}, {judged}", trend.name, trend.begin, trend.end)
        }));
    }
    lines.push(match outcome.holds {
        true => "every rule holds".to_owned(),
        false => format!("BROKEN; repeat it with --seed {}", outcome.seed),
    });
    lines.join("\n")
}

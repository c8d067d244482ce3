//! `dyno pubsub check`: kills servers, brokers and clients, and judges what the clients saw.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use dyno_pubsub_check::run::{self, Mode, Options, Outcome, RunError};
use dyno_suite::Stop;

use crate::args::{CheckedWay, PubsubCheckArgs, PubsubCheckJobArgs};
use crate::exit::Exit;
use crate::terminal;

/// Time between two checks for a request to stop.
const TICK: Duration = Duration::from_millis(100);

pub fn run(args: &PubsubCheckArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let own = env::current_exe().context("cannot find this program's own file")?;
    let own = own.display().to_string();
    let dir = folder()?;
    let seed = args.seed.unwrap_or_else(drawn);
    let mut options = Options::new(
        vec![own, "pubsub".to_string(), "check-job".to_string()],
        dir.clone(),
        args.kills,
        seed,
    );
    options.mode = match args.way {
        CheckedWay::Direct => Mode::Direct,
        CheckedWay::Sql => Mode::Sql,
        CheckedWay::Broker => Mode::Broker,
        CheckedWay::Queue => Mode::Queue,
        CheckedWay::Kafka => Mode::Kafka,
    };
    options.nodes = usize::from(args.nodes);
    options.brokers = usize::from(args.brokers);
    options.python.clone_from(&args.python);
    options.soak = args.soak;
    options.narrate = !args.json;
    let outcome = until_asked(&options, stop).with_context(|| {
        let folder = dir.display();
        format!("seed {seed}: the check came to no judgement; what it left is in {folder}")
    })?;
    // The folder goes only when every rule holds. The history and the server's files are the
    // evidence of a broken one.
    if outcome.holds {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&outcome)?)?;
    } else {
        terminal::print(&as_text(&outcome, &dir))?;
    }
    Ok(if outcome.holds { Exit::Done } else { Exit::No })
}

/// Runs the check. After a request to stop no further fault is injected, and what has happened
/// until then is judged.
fn until_asked(options: &Options, stop: &Stop) -> Result<Outcome, RunError> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if stop.asked() {
                    options.stop.store(true, Ordering::Relaxed);
                }
                thread::park_timeout(TICK);
            }
        });
        let outcome = run::run(options);
        done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        outcome
    })
}

/// Runs one client of a check until it is done or killed.
pub fn job(args: &PubsubCheckJobArgs) -> anyhow::Result<Exit> {
    dyno_pubsub_check::child::run(&args.job)?;
    Ok(Exit::Done)
}

/// Makes a folder for the check. Its path is short, because sockets lie in it, and the server's
/// user may enter it.
fn folder() -> anyhow::Result<PathBuf> {
    let dir = env::temp_dir().join(format!("dyno-check-{}", process::id()));
    fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    fs::set_permissions(&dir, Permissions::from_mode(0o711))
        .with_context(|| format!("cannot open {} to the server's user", dir.display()))?;
    Ok(dir)
}

fn drawn() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_millis() as u64 % 1_000_000)
}

fn as_text(outcome: &Outcome, dir: &Path) -> String {
    let verdict = &outcome.verdict;
    let blows: Vec<String> = outcome
        .faults
        .iter()
        .map(|(fault, n)| format!("{n} {fault}"))
        .collect();
    let mut lines = vec![
        format!(
            "seed {}, {:.0} s, {} faults: {}; {} cut inside their commit, {} of them at a broker",
            outcome.seed,
            outcome.seconds,
            outcome.kills(),
            blows.join(", "),
            outcome.cut_in_commit,
            outcome.cut_at_brokers
        ),
        format!(
            "{} messages: {} acknowledged, {} unknown, {} refused; {} deliveries, {} of them again; longest stall {:.1} s",
            verdict.messages,
            verdict.acknowledged,
            verdict.unknown,
            verdict.failed,
            verdict.delivered,
            verdict.redelivered,
            outcome.stall_longest_ms / 1e3
        ),
    ];
    if outcome.lease_changes > 0 {
        let changes = outcome.lease_changes;
        lines.push(format!("partitions were taken by a broker {changes} times"));
    }
    lines.extend(
        outcome
            .left_out
            .iter()
            .map(|what| format!("left out: {what}")),
    );
    lines.extend(
        verdict
            .violations
            .iter()
            .map(|v| format!("broken: {}", v.sentence)),
    );
    lines.extend(
        outcome
            .troubles
            .iter()
            .map(|what| format!("trouble: {what}")),
    );
    lines.extend(soaked(outcome));
    let history = dir.display();
    lines.push(match (outcome.holds, verdict.holds()) {
        (true, _) => "every rule holds".to_string(),
        (false, true) => {
            format!("no rule is broken, but the run did not go well; the history is in {history}")
        }
        (false, false) => format!("a rule is broken; the history is in {history}"),
    });
    lines.join("\n")
}

/// What a soak has shown, a line for each quantity.
fn soaked(outcome: &Outcome) -> impl Iterator<Item = String> + '_ {
    let trends = outcome.soak.iter().flat_map(|soak| &soak.trends);
    trends.map(|trend| {
        let judged = if trend.flat { "flat" } else { "grew" };
        let (name, begin, end) = (&trend.name, trend.begin, trend.end);
        format!("{judged}: {name}: {begin:.1} in the first third, {end:.1} in the last")
    })
}

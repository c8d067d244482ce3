//! `dyno txn check`: simulated clusters, and real servers that are killed or watched.

mod export;
mod recovery;
mod soak;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use dyno_report::counted;
use dyno_suite::Stop;
use dyno_txn_api::{Database, Target};
use dyno_txn_check::redis::RedisDatabase;
use dyno_txn_check::simulate::{Many, many};
use dyno_txn_check::{kill, simulate};
use dyno_txn_open::{DatabaseOptions, open};
use serde_json::json;

use crate::args::{
    CheckedProtocol, TxnCheckArgs, TxnCheckCommand, TxnCheckKillArgs, TxnCheckSimArgs,
};
use crate::exit::Exit;
use crate::terminal;

/// Time between two checks for a request to stop.
const TICK: Duration = Duration::from_millis(100);
/// Small, so that many kills happen while a checkpoint is written.
const CHECKPOINT: &str = "512KiB";
/// More partitions than threads, and more than one thread, so that transactions span both.
const PARTITIONS: &str = "3";

pub fn run(args: &TxnCheckArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        TxnCheckCommand::Sim(args) => sim(args, stop),
        TxnCheckCommand::Kill(args) => kills(args, stop),
        TxnCheckCommand::Soak(args) => soak::run(args, stop),
        TxnCheckCommand::Recovery(args) => recovery::run(args, stop),
        TxnCheckCommand::Export(args) => export::run(args),
    }
}

fn sim(args: &TxnCheckSimArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let threads = thread::available_parallelism().map_or(1, |n| n.get());
    let began = Instant::now();
    let ran = until_asked(stop, |stop| {
        many(
            args.first_seed,
            args.seeds,
            threads,
            &simulate::Options::default(),
            stop,
        )
    });
    let seconds = began.elapsed().as_secs_f64();
    let mut files = Vec::new();
    for run in &ran.broken {
        files.push(run.keep(&args.out)?);
    }
    if args.json {
        let broken = ran.broken.iter().map(|run| {
            json!({
                "seed": run.seed,
                "about": run.about,
                "broken": run.judgement.verdict.broken,
                "violations": run.judgement.verdict.violations,
            })
        });
        terminal::print(&serde_json::to_string_pretty(&json!({
            "from": args.first_seed,
            "seeds": ran.seeds,
            "seconds": seconds,
            "committed": ran.committed,
            "failed": ran.failed,
            "unknown": ran.unknown,
            "crashes": ran.crashes,
            "messages_lost": ran.lost,
            "takeovers": ran.takeovers,
            "broken_seeds": ran.broken_seeds,
            "broken": broken.collect::<Vec<_>>(),
            "histories": files,
        }))?)?;
    } else {
        terminal::print(&as_text(&ran, args.first_seed, seconds, &files))?;
    }
    Ok(if ran.broken_seeds.is_empty() {
        Exit::Done
    } else {
        Exit::No
    })
}

fn as_text(ran: &Many, from: u64, seconds: f64, files: &[PathBuf]) -> String {
    let mut lines = vec![format!(
        "{} from {from} in {seconds:.1} s: {} transactions committed, {} failed, {} unknown; {} crashes, {} of oracles, {} lost",
        counted(ran.seeds, "seed"),
        ran.committed,
        ran.failed,
        ran.unknown,
        ran.crashes,
        counted(ran.takeovers, "takeover"),
        counted(ran.lost, "message"),
    )];
    for run in &ran.broken {
        lines.push(format!("seed {}: {}", run.seed, run.about));
        let violations = run.judgement.verdict.violations.iter();
        lines.extend(violations.map(|v| format!("broken: {:?}: {v}", v.rule)));
    }
    lines.extend(
        files
            .iter()
            .map(|file| format!("history: {}", file.display())),
    );
    lines.push(if ran.broken_seeds.is_empty() {
        "every rule holds".to_string()
    } else {
        format!("seeds in which a rule is broken: {:?}", ran.broken_seeds)
    });
    lines.join("\n")
}

fn kills(args: &TxnCheckKillArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let (own, folder) = own_and_folder()?;
    let seed = args.seed.unwrap_or_else(drawn);
    let began = Instant::now();
    let ran = killed(args, stop, &own, &folder, seed)?;
    let outcome = ran.with_context(|| {
        let folder = folder.display();
        format!("seed {seed}: the check came to no judgement; what it left is in {folder}")
    })?;
    // The folder is kept when a rule is broken: its history and the server's files are the
    // evidence.
    let holds = outcome.holds();
    if holds {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let seconds = began.elapsed().as_secs_f64();
    if args.json {
        let judgement = &outcome.judgement;
        terminal::print(&serde_json::to_string_pretty(&json!({
            "seed": seed,
            "seconds": seconds,
            "rounds": outcome.rounds,
            "kills": outcome.kills,
            "kills_recovering": outcome.kills_recovering,
            "recovery_longest_ms": outcome.recovery_longest.as_secs_f64() * 1e3,
            "committed": judgement.committed,
            "failed": judgement.failed,
            "unknown": judgement.unknown,
            "audits": judgement.audits,
            "stamps_judged": judgement.replayed,
            "holds": holds,
            "broken": judgement.verdict.broken,
            "violations": judgement.verdict.violations,
            "history": outcome.history,
        }))?)?;
    } else {
        terminal::print(&kills_as_text(&outcome, seed, seconds, &folder))?;
    }
    Ok(if holds { Exit::Done } else { Exit::No })
}

/// Runs the rounds, with clients of the protocol that was asked for.
fn killed(
    args: &TxnCheckKillArgs,
    stop: &Stop,
    own: &Path,
    folder: &Path,
    seed: u64,
) -> anyhow::Result<Result<kill::Outcome, kill::KillError>> {
    let redis = args.way == CheckedProtocol::Resp;
    let front = format!("127.0.0.1:{}", dyno_ports::free()?);
    let started = |data: &Path| {
        let mut command = server(own, data);
        if redis {
            command.args(["--resp", &front]);
        }
        command
    };
    let connected = |address: &str, ring: bool| -> dyno_txn_api::Result<Box<dyn Database>> {
        if redis {
            Ok(Box::new(RedisDatabase::connect(&front)?))
        } else {
            connect(address, ring)
        }
    };
    Ok(until_asked(stop, |stop| {
        kill::run(&kill::Options {
            start: &started,
            connect: &connected,
            folder,
            rounds: args.rounds,
            seed,
            clients: args.clients,
            keys_only: redis,
            history: args.history.as_deref(),
            stop,
            after_round: &|round, committed| {
                if !args.json {
                    eprintln!("round {round}: {committed} transactions committed so far");
                }
            },
        })
    }))
}

/// This program's file, and a new folder for a server's directory and what it says.
fn own_and_folder() -> anyhow::Result<(PathBuf, PathBuf)> {
    let own = env::current_exe().context("cannot find this program's own file")?;
    let folder = env::temp_dir().join(format!("dyno-txn-check-{}", std::process::id()));
    fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok((own, folder))
}

fn connect(address: &str, ring: bool) -> dyno_txn_api::Result<Box<dyn Database>> {
    let options = DatabaseOptions {
        ring,
        ..DatabaseOptions::default()
    };
    open(&Target::Dyno(vec![address.to_owned()]), &options)
}

/// The command that starts a server: this program.
fn serve(own: &Path, data: &Path) -> Command {
    let mut command = Command::new(own);
    command.args(["txn", "serve", "--listen", "127.0.0.1:0"]);
    command.args(["--procedures", "check", "--data"]);
    // A token of the caller does not belong to this server.
    command.arg(data).env_remove("DYNO_TOKEN");
    command
}

/// The server of a round, with small checkpoints.
fn server(own: &Path, data: &Path) -> Command {
    let mut command = serve(own, data);
    command.args(["--partitions", PARTITIONS]);
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    let list = if cores > 1 { "0,1" } else { "0" };
    command.args(["--cores", list, "--checkpoint", CHECKPOINT]);
    command
}

fn kills_as_text(outcome: &kill::Outcome, seed: u64, seconds: f64, folder: &Path) -> String {
    let judgement = &outcome.judgement;
    let mut lines = vec![
        format!(
            "seed {seed}, {seconds:.0} s: {} kills under load, {} more while the server recovered; longest recovery {:.0} ms",
            outcome.kills,
            outcome.kills_recovering,
            outcome.recovery_longest.as_secs_f64() * 1e3
        ),
        format!(
            "{} transactions committed, {} failed, {} unknown; {} snapshots of all accounts",
            judgement.committed, judgement.failed, judgement.unknown, judgement.audits
        ),
    ];
    let violations = judgement.verdict.violations.iter();
    lines.extend(violations.map(|v| format!("broken: {:?}: {v}", v.rule)));
    lines.push(if outcome.holds() {
        "every rule holds".to_string()
    } else {
        format!(
            "a rule is broken; the history and the server's files are in {}",
            folder.display()
        )
    });
    lines.join("\n")
}

/// Runs a check with a flag that is set when a stop is requested. The check then judges what has
/// run until that moment.
fn until_asked<T>(stop: &Stop, run: impl FnOnce(&AtomicBool) -> T) -> T {
    let (asked, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if stop.asked() {
                    asked.store(true, Ordering::Relaxed);
                }
                thread::park_timeout(TICK);
            }
        });
        let ran = run(&asked);
        done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        ran
    })
}

fn drawn() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_millis() as u64 % 1_000_000)
}

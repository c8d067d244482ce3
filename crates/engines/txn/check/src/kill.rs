//! Rounds in which a real server is killed under load at a random moment, and must come back with
//! everything that it acknowledged.
//!
//! In each round clients work, over TCP and over shared memory, until the server gets a SIGKILL. In
//! some rounds it gets another one while it recovers. Then it is started again, and all rows are
//! read. One history covers all rounds, and all judges judge it at the end. The seed decides the
//! moments and the clients' choices, but not the outcome.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_sim::Random;
use dyno_txn_api::Options as TxnOptions;

use crate::drive::{Drive, Judgement, Plan, Way};
use crate::history::{History, HistoryError};
use crate::server::{Connect, Server, ServerError, Start};
use crate::workload::{Shape, Tables};

/// How long the server works before it is killed: at least the first, and at most the second more.
const LOAD_MS: (u64, usize) = (40, 400);
/// A kill during recovery comes within this many microseconds of the start.
const RECOVERY_US: usize = 60_000;
/// One round in this many has a kill during recovery.
const RECOVERY_EVERY: usize = 3;
/// How long a started server may take until all rows have been read.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lists grow with every round and are read as a whole, so long checks get more of them.
const ROUNDS_PER_LIST: u64 = 10;

/// Settings of a check of kills.
pub struct Options<'a> {
    /// Starts a server on a directory.
    pub start: &'a Start<'a>,
    /// Connects a client to the server.
    pub connect: &'a Connect<'a>,
    /// An existing folder for the server's directory and its output.
    pub folder: &'a Path,
    /// How often the server is killed under load.
    pub rounds: u64,
    /// Seed of the moments of the kills, and of the clients' choices.
    pub seed: u64,
    /// Clients, each in a thread. Every second one uses shared memory.
    pub clients: u32,
    /// Let clients read and write rows by their keys alone, in transactions and in requests of
    /// several operations, for a database without scans and procedures.
    pub keys_only: bool,
    /// Write the history of all rounds into this file, even if no rule is broken.
    pub history: Option<&'a Path>,
    /// Ends the check after the current round when it is set.
    pub stop: &'a AtomicBool,
    /// Called after each round with its number, counted from 1, and the transactions that were
    /// committed so far.
    pub after_round: &'a (dyn Fn(u64, usize) + Sync),
}

/// The result of a check of kills.
#[derive(Debug)]
pub struct Outcome {
    /// Rounds that ran to their end.
    pub rounds: u64,
    /// Kills while clients were working.
    pub kills: u64,
    /// Kills of a server that had not recovered yet.
    pub kills_recovering: u64,
    /// The longest time from the start of a server until all rows had been read.
    pub recovery_longest: Duration,
    /// The judgement of the history of all rounds.
    pub judgement: Judgement,
    /// The file with the history, if a rule was broken or it was to be kept.
    pub history: Option<PathBuf>,
}

impl Outcome {
    /// Whether no rule was broken.
    pub fn holds(&self) -> bool {
        self.judgement.verdict.holds()
    }
}

/// The reason for which a check has no result.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    /// A server did not start, or ended by itself.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A database that was started again does not answer.
    #[error(
        "after kill {round} the server does not serve what it holds: {source}; the history is in {history}"
    )]
    Unserved {
        /// The round, counted from 1.
        round: u64,
        /// The file with what clients saw until then.
        history: PathBuf,
        /// The last error of the database.
        source: dyno_txn_api::Error,
    },
    /// The database could not be set up.
    #[error("the database cannot be set up: {0}")]
    Setup(#[from] dyno_txn_api::Error),
    /// The history could not be written.
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// Runs the rounds and judges them.
///
/// # Errors
/// See [`KillError`]. A broken rule is not an error; it is part of the outcome.
pub fn run(options: &Options<'_>) -> Result<Outcome, KillError> {
    if let Some(path) = options.history {
        // A file that cannot be written is an error of the first second and not of the last one.
        History::default().save(path, "kills, under way")?;
    }
    let plan = plan(options);
    let shape = plan.shape;
    let mut drive = Drive::new(plan);
    let mut random = Random::fork(options.seed, "kills");
    let mut server = Server::start(options.start, options.folder)?;
    let mut outcome = Outcome {
        rounds: 0,
        kills: 0,
        kills_recovering: 0,
        recovery_longest: Duration::ZERO,
        judgement: drive.judge(),
        history: None,
    };
    let db = (options.connect)(server.address(), false)?;
    let tables = Tables::create(&*db, shape.registers / 8)?;
    drive.open(&*db, tables, PATIENCE)?;
    drop(db);
    for round in 1..=options.rounds {
        if options.stop.load(Ordering::Relaxed) {
            break;
        }
        work_until_killed(options, &mut server, &mut drive, tables, &mut random)?;
        outcome.kills += 1;
        let began = Instant::now();
        if random.below(RECOVERY_EVERY) == 0 {
            let after = Duration::from_micros(random.below(RECOVERY_US) as u64);
            Server::kill_starting(options.start, options.folder, after)?;
            outcome.kills_recovering += 1;
        }
        server = Server::start(options.start, options.folder)?;
        // Everything that committed must be readable after every round, not only after the last
        // one. Else a later write could hide a lost one.
        let read = (options.connect)(server.address(), true)
            .and_then(|db| drive.read_all(&*db, tables, PATIENCE));
        if let Err(source) = read {
            let history = keep(&drive, options)?;
            return Err(KillError::Unserved {
                round,
                history,
                source,
            });
        }
        // The time counts from the first start, so a kill during recovery is part of it.
        outcome.recovery_longest = outcome.recovery_longest.max(began.elapsed());
        outcome.rounds = round;
        let committed = drive.history().count(crate::history::Outcome::Ok);
        (options.after_round)(round, committed);
    }
    outcome.judgement = drive.judge();
    if options.history.is_some() || !outcome.holds() {
        outcome.history = Some(keep(&drive, options)?);
    }
    Ok(outcome)
}

fn plan(options: &Options<'_>) -> Plan {
    Plan {
        seed: options.seed,
        clients: options.clients,
        shape: shape(options),
        ways: if options.keys_only {
            vec![Way::Interactive, Way::Operations]
        } else {
            Plan::default().ways
        },
        options: TxnOptions {
            // A client that lost its server keeps asking for the outcome until the deadline, so
            // each round ends that much later.
            deadline: Duration::from_secs(1),
            ..TxnOptions::default()
        },
        ..Plan::default()
    }
}

/// The rows of a check of so many rounds.
fn shape(options: &Options<'_>) -> Shape {
    Shape {
        lists: Shape::default().lists.max(options.rounds / ROUNDS_PER_LIST),
        keys_only: options.keys_only,
        ..Shape::default()
    }
}

/// Lets clients work, and kills the server at a random moment.
fn work_until_killed(
    options: &Options<'_>,
    server: &mut Server,
    drive: &mut Drive,
    tables: Tables,
    random: &mut Random,
) -> Result<(), KillError> {
    let after = Duration::from_millis(LOAD_MS.0 + random.below(LOAD_MS.1) as u64);
    let address = server.address().to_owned();
    let (over, connected) = (AtomicBool::new(false), AtomicU64::new(0));
    let connect = || {
        let number = connected.fetch_add(1, Ordering::Relaxed);
        (options.connect)(&address, number.is_multiple_of(2))
    };
    thread::scope(|scope| {
        let killer = scope.spawn(|| {
            thread::sleep(after);
            let killed = server.kill();
            // The flag is set even if the kill failed. Otherwise the clients would never stop, and
            // the error would not be seen.
            over.store(true, Ordering::Release);
            Ok(killed?)
        });
        drive.round(connect, tables, &over);
        match killer.join() {
            Ok(killed) => killed,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn keep(drive: &Drive, options: &Options<'_>) -> Result<PathBuf, KillError> {
    let in_folder = options.folder.join("history.ndjson");
    let path = options.history.map_or(in_folder, Path::to_path_buf);
    let about = format!("kills, seed {}", options.seed);
    drive.history().save(&path, &about)?;
    Ok(path)
}

//! Rounds in which a real server is killed under load, at a random moment, and must come back with
//! all that it answered.
//!
//! A round: clients work over two carriers until the server gets a kill -9; now and then it gets
//! another while it recovers; then it is started again and everything is read. One history goes
//! across all rounds, and all judges judge it at the end. The seed decides the moments and what
//! clients do, not what comes of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_sim::Random;
use dyno_txn_api::Options as HowToRun;

use crate::drive::{Drive, Judgement, Plan};
use crate::history::HistoryError;
use crate::server::{Connect, Server, ServerError, Start};
use crate::work::{Shape, Tables};

/// The server works at least so long before it is killed, and so much longer at most.
const LOAD_MS: (u64, usize) = (40, 400);
/// A kill while it recovers comes within so many microseconds of its start.
const RECOVERY_US: usize = 60_000;
/// In one round of so many it is killed while it recovers, too.
const RECOVERY_EVERY: usize = 3;
/// How long a started server may take until everything can be read.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lists get longer with every round, so there are more of them in long checks.
const ROUNDS_PER_LIST: u64 = 10;

/// What is to be done.
pub struct Options<'a> {
    /// Starts a server.
    pub start: &'a Start<'a>,
    /// Connects to it.
    pub connect: &'a Connect<'a>,
    /// A folder for the server's directory and what it says; it must be there.
    pub folder: &'a Path,
    /// How often the server is killed under load.
    pub rounds: u64,
    /// Decides when, and what clients do.
    pub seed: u64,
    /// Clients, each in a thread; every second one over shared memory.
    pub clients: u32,
    /// Ends it after the round under way.
    pub stop: &'a AtomicBool,
    /// Told after each round: its number, counted from 1, and committed transactions so far.
    pub after_round: &'a (dyn Fn(u64, usize) + Sync),
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// Rounds that ran.
    pub rounds: u64,
    /// Kills under load.
    pub kills: u64,
    /// Kills of a server that had not recovered yet.
    pub kills_recovering: u64,
    /// From start to everything read, the longest of all rounds.
    pub recovery_longest: Duration,
    /// What all judges found.
    pub judgement: Judgement,
    /// The history's file, if a rule is broken.
    pub history: Option<PathBuf>,
}

impl Outcome {
    /// Whether no rule was broken.
    pub fn holds(&self) -> bool {
        self.judgement.verdict.holds()
    }
}

/// Why there is no judgement.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    /// A server did not start, or ended by itself.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A database that was started again does not answer: round, counted from 1, and why.
    #[error(
        "after kill {round} the server does not serve what it holds: {source}; the history is in {history}"
    )]
    Unserved {
        /// The round.
        round: u64,
        /// What clients saw until then.
        history: PathBuf,
        /// Why.
        source: dyno_txn_api::Error,
    },
    /// The database could not be set up.
    #[error("the database cannot be set up: {0}")]
    Setup(#[from] dyno_txn_api::Error),
    /// The history cannot be kept.
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// Runs the rounds and judges them.
///
/// # Errors
/// See [`KillError`]; a broken rule is not an error, it is in the outcome.
pub fn run(options: &Options<'_>) -> Result<Outcome, KillError> {
    let shape = Shape {
        lists: Shape::default().lists.max(options.rounds / ROUNDS_PER_LIST),
        ..Shape::default()
    };
    let mut drive = Drive::new(Plan {
        seed: options.seed,
        clients: options.clients,
        shape,
        options: HowToRun {
            // A client that lost its server asks for the outcome until then, which is how long a
            // round ends late.
            deadline: Duration::from_secs(1),
            ..HowToRun::default()
        },
        ..Plan::default()
    });
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
        outcome.recovery_longest = outcome.recovery_longest.max(began.elapsed());
        outcome.rounds = round;
        let committed = drive.history().count(crate::history::Outcome::Ok);
        (options.after_round)(round, committed);
    }
    outcome.judgement = drive.judge();
    if !outcome.holds() {
        outcome.history = Some(keep(&drive, options)?);
    }
    Ok(outcome)
}

/// Clients work; the server is killed at a random moment.
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
    let path = options.folder.join("history.ndjson");
    let about = format!("kills, seed {}", options.seed);
    drive.history().save(&path, &about)?;
    Ok(path)
}

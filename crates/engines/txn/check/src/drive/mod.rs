//! Clients that drive a real database and record what they saw. Tests of engines and the checks
//! that kill servers use them.

mod attempt;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyno_sim::Random;
use dyno_txn_api::{Database, Error, Options, Result, Retry};

use crate::history::{History, Outcome, Transaction};
use crate::verdict::Verdict;
use crate::workload::{Mix, PlannedTransaction, Shape, Tables};
use crate::{bank, cycles, replay};

pub use attempt::{Way, attempt};
pub(crate) use attempt::{answered, one_shot};

/// Pause between two attempts of a transaction that must succeed.
const PAUSE: Duration = Duration::from_millis(20);

/// What the clients of a check do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Seed of what the clients do, but not of when they do it or of what it leads to.
    pub seed: u64,
    /// Clients, each in a thread.
    pub clients: u32,
    /// The most transactions of each client in a round.
    pub transactions: u64,
    /// How many rows of each kind there are.
    pub shape: Shape,
    /// How often clients choose which workload.
    pub mix: Mix,
    /// The ways to run transactions, which are chosen equally often.
    pub ways: Vec<Way>,
    /// Deadline and priority of each transaction.
    pub options: Options,
    /// How long a client waits after a failure.
    pub pause: Duration,
    /// Time between the moments at which two transactions of a client are due. Zero means that each
    /// begins when the one before it is answered.
    pub pace: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 1,
            clients: 4,
            transactions: u64::MAX,
            shape: Shape::default(),
            mix: Mix::default(),
            ways: vec![Way::Interactive, Way::Call, Way::Operations],
            options: Options::default(),
            pause: Duration::from_millis(1),
            pace: Duration::ZERO,
        }
    }
}

/// A check of one database over several rounds, through which ids and time continue.
#[derive(Debug)]
pub struct Drive {
    plan: Plan,
    started: Instant,
    next_id: AtomicU64,
    /// Rounds that were begun, so that clients do something else in each.
    rounds: u64,
    history: History,
}

/// The result of a check, and how much it is based on.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The breaches that all judges found.
    pub verdict: Verdict,
    /// Transactions that were committed.
    pub committed: usize,
    /// Transactions that had no effect.
    pub failed: usize,
    /// Transactions whose outcome is unknown.
    pub unknown: usize,
    /// Transactions that saw a snapshot of all accounts.
    pub audits: usize,
    /// Whether the order of timestamps was judged too. A database may have no timestamps.
    pub replayed: bool,
}

impl Drive {
    /// A check whose history is empty.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            started: Instant::now(),
            next_id: AtomicU64::new(1),
            rounds: 0,
            history: History::default(),
        }
    }

    /// Gives every account its first balance. It retries until that succeeds.
    ///
    /// # Errors
    /// The error of the last attempt within `patience`.
    pub fn open(&mut self, db: &dyn Database, tables: Tables, patience: Duration) -> Result<()> {
        let shape = self.plan.shape;
        self.insist(db, tables, patience, |by| shape.open(by))
    }

    /// Reads all rows, which must succeed, because what was committed must be there.
    ///
    /// # Errors
    /// The error of the last attempt within `patience`.
    pub fn read_all(
        &mut self,
        db: &dyn Database,
        tables: Tables,
        patience: Duration,
    ) -> Result<()> {
        let shape = self.plan.shape;
        self.insist(db, tables, patience, |by| shape.read_all(by))
    }

    /// Lets the clients work until each has done its transactions or `stop` is set. `connect` gives
    /// each client its own connection; a client that cannot connect tries again until then.
    pub fn round<C>(
        &mut self,
        connect: impl Fn() -> Result<C> + Sync,
        tables: Tables,
        stop: &AtomicBool,
    ) where
        C: Deref<Target: Database>,
    {
        self.rounds += 1;
        let drive = &*self;
        let done: Vec<Transaction> = std::thread::scope(|scope| {
            let client = |number| {
                let connect = &connect;
                scope.spawn(move || drive.client(number, connect, tables, stop))
            };
            let clients: Vec<_> = (0..drive.plan.clients).map(client).collect();
            let joined = clients.into_iter().map(|client| match client.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.flatten().collect()
        });
        // The judges rely on the order of beginnings, and each client has its transactions in a
        // list of its own.
        self.history.transactions.extend(done);
        self.history
            .transactions
            .sort_by_key(|t| (t.begin_ns, t.id));
    }

    /// The history of all rounds so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Judges all rounds so far.
    pub fn judge(&self) -> Judgement {
        judge(&self.history, self.plan.shape)
    }

    /// Nanoseconds since the check was made.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn client<C>(
        &self,
        number: u32,
        connect: &impl Fn() -> Result<C>,
        tables: Tables,
        stop: &AtomicBool,
    ) -> Vec<Transaction>
    where
        C: Deref<Target: Database>,
    {
        // Not from the next id, which depends on how fast the clients of earlier rounds were.
        let choices = format!("client {number} in round {}", self.rounds);
        let mut random = Random::fork(self.plan.seed, &choices);
        let mut done: Vec<Transaction> = Vec::new();
        let mut connection: Option<C> = None;
        let mut due = Instant::now();
        while !stop.load(Ordering::Relaxed) && (done.len() as u64) < self.plan.transactions {
            let Some(db) = &connection else {
                connection = connect().ok();
                if connection.is_none() {
                    std::thread::sleep(PAUSE);
                }
                continue;
            };
            // A client that is late does not skip what was due: it catches up, or a slow server
            // would be given less load.
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            due += self.plan.pace;
            let planned = self.plan.shape.plan(self.plan.mix, &mut random, self.id());
            let way = self.plan.ways[random.below(self.plan.ways.len())];
            let clock = || self.now_ns();
            let (mut recorded, error) = attempt(
                db.as_database(),
                tables,
                &planned,
                way,
                &self.plan.options,
                &clock,
            );
            recorded.process = number;
            done.push(recorded);
            // After an error that is not safe to retry the connection may be dead, for example
            // because the server was killed.
            if let Some(error) = error {
                if error.retry() != Retry::Safe {
                    connection = None;
                }
                std::thread::sleep(self.plan.pause);
            }
        }
        done
    }

    /// Tries until the transaction is committed. Every attempt becomes part of the history.
    fn insist(
        &mut self,
        db: &dyn Database,
        tables: Tables,
        patience: Duration,
        planned: impl Fn(u64) -> PlannedTransaction,
    ) -> Result<()> {
        let until = Instant::now() + patience;
        loop {
            let planned = planned(self.id());
            let clock = || self.now_ns();
            let (recorded, error) = attempt(
                db,
                tables,
                &planned,
                Way::Interactive,
                &self.plan.options,
                &clock,
            );
            let ok = recorded.outcome == Outcome::Ok;
            self.history.transactions.push(recorded);
            match error {
                Some(error) if Instant::now() > until => {
                    let text = format!("after {patience:?} still: {}", error.text());
                    return Err(Error::with_retry(error.kind(), error.retry(), text));
                }
                _ if ok => return Ok(()),
                _ => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// Runs all judges over a history.
pub fn judge(history: &History, shape: Shape) -> Judgement {
    let (mut verdict, audits) = bank::judge(history, shape.bank());
    verdict.merge(cycles::judge(history));
    let replayed = replay::judge(history);
    // A history without timestamps cannot be replayed. That is not a breach, and `replayed` says
    // so.
    let judged = replayed.is_ok();
    verdict.merge(replayed.unwrap_or_default());
    Judgement {
        verdict,
        committed: history.count(Outcome::Ok),
        failed: history.count(Outcome::Fail),
        unknown: history.count(Outcome::Unknown),
        audits,
        replayed: judged,
    }
}

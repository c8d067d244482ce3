//! What a run is asked to do.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::nemesis::Fault;

/// Which interface of the engine is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Clients of the library that speak SQL with the server.
    Direct,
    /// Clients that call the SQL functions, as any driver can.
    Sql,
    /// Clients that speak with brokers.
    Broker,
    /// Senders and workers of a queue.
    Queue,
    /// Clients of Kafka, over librdkafka, that speak with brokers.
    Kafka,
}

impl Mode {
    /// Whether clients speak with brokers, which can be killed.
    pub fn has_brokers(self) -> bool {
        matches!(self, Mode::Broker | Mode::Kafka)
    }
}

/// The settings of a run. The rates are modest on purpose, because correctness is judged and not
/// speed.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program to run as child processes, with the arguments before the job.
    pub program: Vec<String>,
    /// An empty folder for servers, logs and, if the run fails, the history. The server's user must
    /// be able to enter it.
    pub dir: PathBuf,
    /// How many faults are injected.
    pub kills: usize,
    /// The seed that the plan is drawn from.
    pub seed: u64,
    /// Which interface of the engine is judged.
    pub mode: Mode,
    /// How many servers: 1, or a primary with 1 or 2 synchronous standbys.
    pub nodes: usize,
    /// How many partitions the topic has.
    pub partitions: u32,
    /// How many groups read all of the topic.
    pub groups: u32,
    /// How many processes produce, or send to the queue.
    pub producers: usize,
    /// How many processes of each group consume, or work on the queue.
    pub consumers: usize,
    /// How many brokers run, for clients of brokers.
    pub brokers: usize,
    /// The interpreter of Python with confluent-kafka, for clients of Kafka.
    pub python: PathBuf,
    /// How many messages each producer sends a second.
    pub rate: u32,
    /// Length of a message, bytes.
    pub value_bytes: usize,
    /// Leases of members and brokers, and the visibility of a queue's messages, milliseconds.
    pub lease_ms: u64,
    /// Whether a transaction with an old snapshot stays open all the time.
    pub snapshot: bool,
    /// How long the run goes on after the faults, taking samples. Then it judges whether everything
    /// stayed flat.
    pub soak: Option<Duration>,
    /// The only faults to inject; all that fit if it is empty.
    pub only: Vec<Fault>,
    /// Clients make the mistakes that the engine's rules are there to prevent, so that the check
    /// must fail: a test of the check itself, in SQL mode.
    pub careless: bool,
    /// The caller sets it to end the run early: no further fault is injected, and what has happened
    /// so far is judged.
    pub stop: Arc<AtomicBool>,
    /// Whether to report what happens to standard error, line by line.
    pub narrate: bool,
}

impl Options {
    /// A run of `kills` faults from `seed`, against one server in direct mode.
    pub fn new(program: Vec<String>, dir: PathBuf, kills: usize, seed: u64) -> Self {
        Self {
            program,
            dir,
            kills,
            seed,
            mode: Mode::Direct,
            nodes: 1,
            partitions: 4,
            groups: 2,
            producers: 3,
            consumers: 2,
            brokers: 2,
            python: PathBuf::from("python3"),
            rate: 300,
            value_bytes: 120,
            lease_ms: 1500,
            snapshot: true,
            soak: None,
            only: Vec::new(),
            careless: false,
            stop: Arc::default(),
            narrate: false,
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn say(&self, line: impl FnOnce() -> String) {
        if self.narrate {
            eprintln!("{}", line());
        }
    }

    /// The faults that fit this run.
    pub fn kinds(&self) -> Vec<Fault> {
        let mut kinds = vec![Fault::Producer, Fault::Consumer, Fault::Stall, Fault::Cut];
        kinds.push(Fault::CutInCommit);
        if self.mode.has_brokers() {
            kinds.push(Fault::Broker);
        }
        if self.nodes > 1 {
            // A primary that is killed and comes back itself shows commits that no standby has
            // confirmed, and a later takeover may lose them again: PostgreSQL promises nothing
            // about these, so there a dead primary is always replaced.
            kinds.push(Fault::Primary);
        } else {
            kinds.extend([Fault::Backend, Fault::Server, Fault::DiskFull]);
        }
        kinds.retain(|kind| self.only.is_empty() || self.only.contains(kind));
        kinds
    }
}

//! What a run is asked to do.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::nemesis::Blow;

/// Which way of the engine is judged.
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
}

/// How a run goes. The rates are modest on purpose: what is judged is right and wrong.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program to run as child processes, with the arguments before the job.
    pub program: Vec<String>,
    /// An empty folder for servers, logs and, if the run fails, the history. The server's user must
    /// be able to enter it.
    pub dir: PathBuf,
    /// How many blows fall.
    pub kills: usize,
    /// What the plan is drawn from.
    pub seed: u64,
    /// What is judged.
    pub mode: Mode,
    /// How many servers: 1, or a primary with 1 or 2 synchronous standbys.
    pub nodes: usize,
    /// Partitions of the topic.
    pub partitions: u32,
    /// Groups that read all of it.
    pub groups: u32,
    /// Producing processes, or senders of the queue.
    pub producers: usize,
    /// Consuming processes of each group, or workers of the queue.
    pub consumers: usize,
    /// Brokers, in broker mode.
    pub brokers: usize,
    /// Messages a second of each producer.
    pub rate: u32,
    /// Length of a message, bytes.
    pub value_bytes: usize,
    /// Leases of members and brokers, and the visibility of a queue's messages, milliseconds.
    pub lease_ms: u64,
    /// Whether a transaction with an old snapshot stays open all the time.
    pub snapshot: bool,
    /// Runs this long after the blows, sampling, and judges whether everything stayed flat.
    pub soak: Option<Duration>,
    /// Only these blows; all that fit when empty.
    pub only: Vec<Blow>,
    /// Clients make the mistakes that the engine's rules are there to prevent, so that the check
    /// must fail: a test of the check itself, in SQL mode.
    pub careless: bool,
    /// Set from outside, ends the run early: no further blow falls, and what has happened is
    /// judged.
    pub stop: Arc<AtomicBool>,
    /// Tells what happens, line by line, to standard error.
    pub narrate: bool,
}

impl Options {
    /// A run of `kills` blows from `seed`, against one server in direct mode.
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

    /// The blows that fit this run.
    pub fn kinds(&self) -> Vec<Blow> {
        let mut kinds = vec![Blow::Producer, Blow::Consumer, Blow::Stall, Blow::Cut];
        kinds.push(Blow::CutInCommit);
        if self.mode == Mode::Broker {
            kinds.push(Blow::Broker);
        }
        if self.nodes > 1 {
            // A primary that is killed and comes back itself shows commits that no standby has
            // confirmed, and a later takeover may lose them again: PostgreSQL promises nothing
            // about these, so there a dead primary is always replaced.
            kinds.push(Blow::Primary);
        } else {
            kinds.extend([Blow::Backend, Blow::Server, Blow::DiskFull]);
        }
        kinds.retain(|kind| self.only.is_empty() || self.only.contains(kind));
        kinds
    }
}

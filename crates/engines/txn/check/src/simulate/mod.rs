//! Simulates the whole cluster in one thread from one seed: partitions on several nodes, oracles
//! that fail over, and clients, with a network, clocks and disks that have faults.
//!
//! | file | what |
//! |---|---|
//! | `chosen` | what a seed decides: the size of the cluster, its times, its faults |
//! | `phases` | the parts of a run: setting up, storm and rest |
//! | `cluster` | the simulated world, and the dispatch of its events to nodes |
//! | `core` | one partition with its log, through crashes and recovery |
//! | `lives` | nodes crash, disks fail, nodes start |
//! | `journal` | the real log on a simulated disk, and what it must read back |
//! | `oracles` | the oracles, and a check that timestamps only grow |
//! | `client`, `session` | clients, and the transactions of their sessions |
//! | `known_answers` | runs a transaction's code again with the answers so far |
//! | `many` | many seeds in several threads |
//!
//! A run has three parts. First tables and accounts are created without faults. Then clients work
//! in a storm of faults. Then all faults end, and everything must come to rest: every row can be
//! read, and no partition has an undecided transaction. All judges judge what the clients saw. The
//! same seed gives the same run, event by event.

mod chosen;
mod client;
mod cluster;
mod core;
mod journal;
mod known_answers;
mod lives;
mod many;
mod oracles;
mod phases;
mod session;

use dyno_txn_core::planted::Planted;

use crate::drive::{self, Judgement};
use crate::history::History;

pub use many::{Many, many};

use chosen::Chosen;
use cluster::Cluster;

/// What all runs have in common. Everything else is drawn from the seed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// A bug that is planted on purpose, which the judges must find.
    pub planted: Planted,
    /// Whether clients wait for the answer to each write before they continue.
    pub patient: bool,
    /// Whether the last events are kept as text.
    pub lines: bool,
    /// Whether disks confirm writes that they did not do, which the judges must notice.
    pub lying_disks: bool,
}

/// The result of one run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The seed that it was run from.
    pub seed: u64,
    /// The parameters that the seed decided, as text.
    pub about: String,
    /// The breaches that the judges found.
    pub judgement: Judgement,
    /// What the clients did and saw.
    pub history: History,
    /// A hash of all events, which is equal for equal runs.
    pub hash: u64,
    /// How many events there were.
    pub events: u64,
    /// How often a node crashed.
    pub crashes: u64,
    /// Messages that the network lost.
    pub lost: u64,
    /// How often an oracle on a node of its own began to serve.
    pub takeovers: u64,
    /// The last events as text, if they were kept.
    pub lines: Vec<String>,
}

impl Run {
    /// Whether no rule was broken.
    pub fn holds(&self) -> bool {
        self.judgement.verdict.holds()
    }
}

/// Runs a seed and judges it.
pub fn simulate(seed: u64, options: &Options) -> Run {
    let mut chosen = Chosen::from_seed(seed);
    chosen.eager &= !options.patient;
    let mut cluster = Cluster::new(chosen, options);
    let broken = cluster.play();
    let mut judgement = drive::judge(cluster.history(), chosen.shape);
    for (rule, sentence) in broken {
        judgement.verdict.add(rule, || sentence);
    }
    let counts = cluster.world.counts();
    let trace = cluster.world.trace();
    Run {
        seed,
        about: format!("{chosen:?}"),
        judgement,
        hash: trace.hash(),
        events: trace.entries(),
        crashes: counts.crashes,
        lost: counts.lost,
        takeovers: cluster.oracles.takeovers(),
        lines: trace.lines().map(str::to_owned).collect(),
        history: cluster.into_history(),
    }
}

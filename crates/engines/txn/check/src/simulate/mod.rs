//! The whole cluster in one thread, from one seed: partitions on several nodes, oracles that fail
//! over, and clients, over a network, clocks and disks with faults.
//!
//! | file | what |
//! |---|---|
//! | `chosen` | what a seed decides: the size of the cluster, its times, its faults |
//! | `phases` | peace, storm and rest |
//! | `cluster` | the world, and which node gets what happens |
//! | `core` | one partition with its log; crash and recovery |
//! | `lives` | nodes crash, disks fail, nodes start |
//! | `journal` | its log, the real one on a simulated disk, and what it must read back |
//! | `oracles` | who gives stamps |
//! | `client`, `session` | clients and what each is doing |
//! | `known` | a transaction's code, run again with what is known so far |
//! | `many` | many seeds, side by side |
//!
//! A run has three parts: tables and accounts are made in peace; clients work in a storm of faults;
//! then all faults end, and everything must come to rest: every row can be read, and no partition
//! holds anything undecided. All judges judge what the clients saw. The same seed gives the same
//! run, event by event.

mod chosen;
mod client;
mod cluster;
mod core;
mod journal;
mod known;
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

/// What all runs have in common; everything else is the seed's.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// A bug that was put in on purpose.
    pub planted: Planted,
    /// Clients wait for the answer to each write before they go on.
    pub patient: bool,
    /// Whether the last events are kept as text.
    pub lines: bool,
    /// Disks confirm writes that they did not do, which must be noticed.
    pub lying_disks: bool,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// What the seed decided.
    pub about: String,
    /// What the judges found.
    pub judgement: Judgement,
    /// What clients saw.
    pub history: History,
    /// A hash of all that happened.
    pub hash: u64,
    /// How many things happened.
    pub events: u64,
    /// Crashes of nodes.
    pub crashes: u64,
    /// Messages lost.
    pub lost: u64,
    /// How often an oracle on a node of its own began to serve.
    pub takeovers: u64,
    /// The last events, if they were kept.
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
    let mut chosen = Chosen::of(seed);
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

//! Runs many seeds, for the command and for tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{Options, Run, simulate};
use crate::history::HistoryError;

/// The results of many seeds together.
#[derive(Debug, Default)]
pub struct Many {
    /// Seeds that ran to their end.
    pub seeds: u64,
    /// Transactions committed in all of them.
    pub committed: u64,
    /// Transactions that had no effect.
    pub failed: u64,
    /// Transactions whose outcome is unknown.
    pub unknown: u64,
    /// Crashes of nodes in all runs.
    pub crashes: u64,
    /// Messages that the network lost.
    pub lost: u64,
    /// How often an oracle began to serve.
    pub takeovers: u64,
    /// Runs in which a rule was broken, ordered by seed. Only the first few are kept, because each
    /// has its history.
    pub broken: Vec<Run>,
    /// All seeds in which a rule was broken.
    pub broken_seeds: Vec<u64>,
}

/// Broken runs that are kept whole.
const KEPT: usize = 4;

impl Many {
    fn add(&mut self, run: Run) {
        self.seeds += 1;
        self.committed += run.judgement.committed as u64;
        self.failed += run.judgement.failed as u64;
        self.unknown += run.judgement.unknown as u64;
        self.crashes += run.crashes;
        self.lost += run.lost;
        self.takeovers += run.takeovers;
        if !run.holds() {
            self.broken_seeds.push(run.seed);
            self.broken.push(run);
            self.broken.sort_by_key(|run| run.seed);
            self.broken.truncate(KEPT);
        }
    }
}

/// Runs the seeds `from..from + seeds` on `threads` threads. Runs share nothing, so the result does
/// not depend on the number of threads. `stop` ends it after the seeds that are running.
pub fn many(from: u64, seeds: u64, threads: usize, options: &Options, stop: &AtomicBool) -> Many {
    let next = AtomicU64::new(0);
    let all = Mutex::new(Many::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= seeds {
                        break;
                    }
                    let run = simulate(from.saturating_add(at), options);
                    all.lock().add(run);
                }
            });
        }
    });
    let mut all = all.into_inner();
    all.broken_seeds.sort_unstable();
    all
}

impl Run {
    /// Writes the history into the folder, in a file named after the seed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, folder: &Path) -> Result<PathBuf, HistoryError> {
        let path = folder.join(format!("dyno-txn-seed-{}.ndjson", self.seed));
        let about = format!("simulation, seed {}", self.seed);
        self.history.save(&path, &about)?;
        Ok(path)
    }
}

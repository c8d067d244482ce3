//! What an engine counts, where all threads can see it.

use std::sync::atomic::{AtomicU64, Ordering};

use dyno_txn_core::Partition;

use super::journal::Journal;

/// The names of a partition's figures, in their order; those with `_total` only grow.
pub(crate) const NAMES: [&str; 12] = [
    "committed_inline_total",
    "committed_across_total",
    "aborted_total",
    "conflicts_total",
    "waits_total",
    "pushes_total",
    "reruns_total",
    "log_writes_total",
    "log_bytes_since_checkpoint",
    "memory_bytes",
    "checkpoints_total",
    "checkpoint_failures_total",
];

/// Figures of one partition.
#[derive(Debug, Default)]
pub(crate) struct Figures([AtomicU64; NAMES.len()]);

impl Figures {
    /// Brings all up to date, but for those of checkpoints.
    pub fn publish(&self, partition: &Partition, journal: &Journal) {
        let counted = partition.counters();
        let values = [
            counted.committed_inline,
            counted.committed_across,
            counted.aborted,
            counted.conflicts,
            counted.waits,
            counted.pushes,
            counted.reruns,
            journal.writes,
            journal.since_checkpoint_bytes(),
            partition.memory_bytes(),
        ];
        for (cell, value) in self.0.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    /// A checkpoint has ended.
    pub fn checkpoint(&self, well: bool) {
        let at = NAMES.len() - if well { 2 } else { 1 };
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }

    /// A figure by its place in [`NAMES`].
    pub fn get(&self, at: usize) -> u64 {
        self.0[at].load(Ordering::Relaxed)
    }
}

/// The sums over all partitions, by name.
pub(crate) fn sums(all: &[Figures]) -> Vec<(String, u64)> {
    let sum = |at| all.iter().map(|figures| figures.get(at)).sum();
    let names = NAMES.iter().enumerate();
    names
        .map(|(at, name)| (name.trim_end_matches("_total").to_owned(), sum(at)))
        .collect()
}

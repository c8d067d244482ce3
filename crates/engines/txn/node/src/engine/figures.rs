//! What an engine counts. The threads write their own partitions' figures; any thread may read
//! them.

use std::sync::atomic::{AtomicU64, Ordering};

use dyno_txn_core::Partition;

use super::journal::Journal;

/// The names of a partition's figures, in their order. Those that end in `_total` only grow.
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

#[derive(Debug, Default)]
pub(crate) struct Figures([AtomicU64; NAMES.len()]);

impl Figures {
    /// Brings all figures up to date except those of checkpoints, which are counted as they happen.
    pub fn publish(&self, partition: &Partition, journal: &Journal) {
        let counters = partition.counters();
        let values = [
            counters.committed_inline,
            counters.committed_across,
            counters.aborted,
            counters.conflicts,
            counters.waits,
            counters.pushes,
            counters.reruns,
            journal.writes,
            journal.since_checkpoint_bytes(),
            partition.memory_bytes(),
        ];
        for (cell, value) in self.0.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    pub fn checkpoint_ended(&self, succeeded: bool) {
        let at = NAMES.len() - if succeeded { 2 } else { 1 };
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }

    /// A figure by its index in [`NAMES`].
    pub fn get(&self, at: usize) -> u64 {
        self.0[at].load(Ordering::Relaxed)
    }
}

/// The sums over all partitions, by name without `_total`.
pub(crate) fn sums(all: &[Figures]) -> Vec<(String, u64)> {
    let sum = |at| all.iter().map(|figures| figures.get(at)).sum();
    let names = NAMES.iter().enumerate();
    names
        .map(|(at, name)| (name.trim_end_matches("_total").to_owned(), sum(at)))
        .collect()
}

//! What can go wrong while measuring.

use std::io;

/// Why a load could not be run or its latencies not stored.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A rate that no schedule can follow.
    #[error("a rate of {rate_per_s} per second is not a finite number above zero")]
    Rate {
        /// The rate.
        rate_per_s: f64,
    },
    /// A search for a capacity that cannot begin or end.
    #[error(
        "a search from {first} within {lowest} to {highest} per second, to a factor of {precision}, makes no sense"
    )]
    Search {
        /// The lowest rate.
        lowest: f64,
        /// The first rate.
        first: f64,
        /// The highest rate.
        highest: f64,
        /// Where it ends.
        precision: f64,
    },
    /// A load needs at least one thread.
    #[error("a load on {threads} threads runs nothing")]
    Threads {
        /// The number asked for.
        threads: usize,
    },
    /// A thread of the load panicked: its operation has a fault.
    #[error("thread {thread} of the load panicked")]
    Panicked {
        /// Which thread, from 0.
        thread: usize,
    },
    /// A histogram log could not be written.
    #[error("cannot write the histogram log: {0}")]
    Write(#[source] io::Error),
    /// A histogram could not be made, added or encoded.
    #[error("cannot {action} a latency histogram: {reason}")]
    Histogram {
        /// What was tried.
        action: &'static str,
        /// Why not.
        reason: String,
    },
    /// A histogram log that cannot be read.
    #[error("entry {entry} of the histogram log cannot be read: {reason}")]
    Read {
        /// Which entry, from 1.
        entry: usize,
        /// Why not.
        reason: String,
    },
}

impl MeasureError {
    pub(crate) fn histogram(action: &'static str, reason: impl std::fmt::Debug) -> Self {
        Self::Histogram {
            action,
            reason: format!("{reason:?}"),
        }
    }
}

//! What can go wrong while measuring.

use std::io;

/// Why a load could not be run or its latencies not stored.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A rate that no schedule can follow.
    #[error("a rate of {rate_per_s} per second is not a finite number above zero")]
    Rate {
        /// The rate as the caller gave it.
        rate_per_s: f64,
    },
    /// A search for a capacity that cannot begin or end.
    #[error(
        "a search from {first} within {lowest} to {highest} per second, to a factor of {precision}, makes no sense"
    )]
    Search {
        /// The rate below which nothing is probed.
        lowest: f64,
        /// The rate of the first probe.
        first: f64,
        /// The rate above which nothing is probed.
        highest: f64,
        /// The factor between held and failed at which the search ends.
        precision: f64,
    },
    /// A load needs at least one thread.
    #[error("a load on {threads} threads runs nothing")]
    Threads {
        /// The number of threads that the caller gave.
        threads: usize,
    },
    /// A thread of the load panicked: its operation has a fault.
    #[error("thread {thread} of the load panicked")]
    Panicked {
        /// The number of the thread, counted from 0.
        thread: usize,
    },
    /// A histogram log could not be written.
    #[error("cannot write the histogram log: {0}")]
    Write(#[source] io::Error),
    /// A histogram could not be made, added or encoded.
    #[error("cannot {action} a latency histogram: {reason}")]
    Histogram {
        /// The verb of the message: make, grow, add or encode.
        action: &'static str,
        /// The error of the histogram library, as it prints itself.
        reason: String,
    },
    /// A histogram log that cannot be read.
    #[error("entry {entry} of the histogram log cannot be read: {reason}")]
    Read {
        /// The number of the entry in the log, counted from 1.
        entry: usize,
        /// What is wrong with the entry, in the words of the decoder.
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

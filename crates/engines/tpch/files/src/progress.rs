//! Shows another thread how far a job is, and lets it stop the job.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The counters of a job, which only grow, and the request to stop it. The counts are exact only
/// once the job has ended, because threads add to them without waiting for each other.
#[derive(Debug, Default)]
pub struct Progress {
    rows: AtomicU64,
    bytes: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Rows whose pages the sink has taken. Kept files are not counted.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Bytes that the sinks have taken. Kept files are not counted.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Asks the job to end. Files that are being written vanish, and finished ones stay.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stop_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sets the counts to those that another program has sent.
    pub(crate) fn set(&self, rows: u64, bytes: u64) {
        self.rows.store(rows, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

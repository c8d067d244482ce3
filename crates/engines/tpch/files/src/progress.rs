//! How far a job is, for who looks from another thread, and the wish to stop it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters that only grow.
#[derive(Debug, Default)]
pub struct Progress {
    rows: AtomicU64,
    bytes: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Rows whose pages are with the sink, kept files not counted.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Bytes that the sinks took.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Asks the job to end: files under way are left unfinished and vanish.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stop_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Takes over counts that another program made.
    pub(crate) fn set(&self, rows: u64, bytes: u64) {
        self.rows.store(rows, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

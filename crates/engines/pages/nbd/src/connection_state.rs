//! What other threads know of a connection: when it came, and when its client was last heard.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Written by the connection's thread, and read by the accepting and the watching thread.
#[derive(Debug)]
pub struct ConnectionState {
    accepted_at: Instant,
    settled: AtomicBool,
    /// Milliseconds after `accepted_at`; 0 until the first bytes after the handshake.
    last_bytes_ms: AtomicU64,
    /// Whether the server itself has closed the connection.
    closed: AtomicBool,
}

impl ConnectionState {
    pub fn new() -> Self {
        Self {
            accepted_at: Instant::now(),
            settled: AtomicBool::new(false),
            last_bytes_ms: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Notes that the handshake is done.
    pub fn settle(&self) {
        self.settled.store(true, Relaxed);
    }

    /// Notes that bytes came; during the handshake they do not count.
    pub fn note_bytes(&self) {
        if self.settled.load(Relaxed) {
            let ms = self.accepted_at.elapsed().as_millis() as u64;
            self.last_bytes_ms.store(ms.max(1), Relaxed);
        }
    }

    /// When the connection came, if nothing was heard after the handshake.
    pub fn silent_since(&self) -> Option<Instant> {
        (self.last_bytes_ms.load(Relaxed) == 0).then_some(self.accepted_at)
    }

    /// Whether its handshake takes longer than `handshake`, however slowly its bytes arrive, or it
    /// has been idle for longer than `idle`.
    pub fn is_late(&self, handshake: Duration, idle: Option<Duration>) -> bool {
        let age = self.accepted_at.elapsed();
        if !self.settled.load(Relaxed) {
            return age > handshake;
        }
        let last_bytes = Duration::from_millis(self.last_bytes_ms.load(Relaxed));
        idle.is_some_and(|idle| age.saturating_sub(last_bytes) > idle)
    }

    /// Notes that the server closes the connection, so that its end is not counted as the client's
    /// failure.
    pub fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }
}

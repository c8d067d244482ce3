//! What is known of a connection from outside its thread: when it came, and when it was last heard.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The connection's thread writes it, others read it.
#[derive(Debug)]
pub struct Seen {
    came: Instant,
    settled: AtomicBool,
    /// Milliseconds after `came`; 0 as long as nothing was heard behind the handshake.
    heard_ms: AtomicU64,
    /// The server has closed the connection by itself.
    closed: AtomicBool,
}

impl Seen {
    /// Of a connection that was accepted now.
    pub fn new() -> Self {
        Self {
            came: Instant::now(),
            settled: AtomicBool::new(false),
            heard_ms: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// The handshake is done.
    pub fn settle(&self) {
        self.settled.store(true, Relaxed);
    }

    /// Bytes came.
    pub fn hear(&self) {
        if self.settled.load(Relaxed) {
            let ms = self.came.elapsed().as_millis() as u64;
            self.heard_ms.store(ms.max(1), Relaxed);
        }
    }

    /// Whether nothing was heard behind the handshake yet, and since when the connection is there.
    pub fn silent_since(&self) -> Option<Instant> {
        (self.heard_ms.load(Relaxed) == 0).then_some(self.came)
    }

    /// Whether its handshake takes longer than `handshake`, however its bytes trickle in, or it has
    /// been idle for longer than `idle`.
    pub fn is_late(&self, handshake: Duration, idle: Option<Duration>) -> bool {
        let age = self.came.elapsed();
        if !self.settled.load(Relaxed) {
            return age > handshake;
        }
        let heard = Duration::from_millis(self.heard_ms.load(Relaxed));
        idle.is_some_and(|idle| age.saturating_sub(heard) > idle)
    }

    /// The server closes it: how it ends is not the client's doing.
    pub fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    /// Whether it did.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }
}

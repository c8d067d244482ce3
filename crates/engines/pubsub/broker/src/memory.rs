//! The bound of the broker's memory, and what it is divided into.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use dyno_net::{Charge, Share};

/// The least bound with which a record of 8 MiB can pass.
pub const LEAST_BYTES: usize = 64 << 20;

/// What the whole bound is divided into. An eighth is left for buffers of connections.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Frames that come in and batches that are not appended yet; when it is used up, connections
    /// are read no more.
    pub queued: Arc<Share>,
    /// Committed rows, and those being appended; when it is used up, the oldest rows are let go.
    pub tails: Arc<Share>,
    /// Rows read from the database for consumers that are behind; when it is used up, they wait.
    pub behind: Arc<Share>,
    /// Partitions that share the tails.
    partitions: Arc<AtomicUsize>,
}

impl Memory {
    /// Divides `bytes`.
    pub fn new(bytes: usize) -> Memory {
        let bytes = bytes.max(LEAST_BYTES);
        Memory {
            queued: Share::new(bytes / 4),
            tails: Share::new(bytes / 8 * 3),
            behind: Share::new(bytes / 4),
            partitions: Arc::default(),
        }
    }

    /// Says among how many partitions the tails are divided.
    pub fn divide_tails(&self, partitions: usize) {
        self.partitions.store(partitions, Ordering::Relaxed);
    }

    /// What one partition's tail may hold now; nothing while slow consumers hold on to more than
    /// there is.
    pub fn tail_bytes(&self) -> usize {
        let limit_bytes = self.tails.limit_bytes();
        if self.tails.used_bytes() > limit_bytes {
            return 0;
        }
        limit_bytes / self.partitions.load(Ordering::Relaxed).max(1)
    }

    /// Bytes charged now.
    pub fn used_bytes(&self) -> usize {
        self.queued.used_bytes() + self.tails.used_bytes() + self.behind.used_bytes()
    }

    /// Ends all waiting for room.
    pub fn close(&self) {
        self.queued.close();
        self.behind.close();
    }
}

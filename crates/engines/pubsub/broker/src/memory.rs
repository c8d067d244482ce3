//! The bound on the broker's memory, and the shares that it is divided into.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use dyno_net::{Charge, Share};

/// The least bound with which a record of 8 MiB can pass.
pub const LEAST_BYTES: usize = 64 << 20;

/// The shares of the whole bound. An eighth of it is left for the buffers of connections.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Frames that come in, and batches that are not appended yet. When it is used up, no more is
    /// read from connections.
    pub queued: Arc<Share>,
    /// Rows that are committed or being appended. When it is used up, the oldest rows are dropped.
    pub tails: Arc<Share>,
    /// Rows read from the database for consumers that are behind. When it is used up, their fetches
    /// wait.
    pub behind: Arc<Share>,
    /// How many partitions share the tails.
    partitions: Arc<AtomicUsize>,
}

impl Memory {
    /// Divides `bytes`, or [`LEAST_BYTES`] if that is more.
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

    /// The bytes that one partition's tail may hold now. It is 0 while slow consumers hold on to
    /// more than the share.
    pub fn tail_bytes(&self) -> usize {
        let limit_bytes = self.tails.limit_bytes();
        if self.tails.used_bytes() > limit_bytes {
            return 0;
        }
        limit_bytes / self.partitions.load(Ordering::Relaxed).max(1)
    }

    /// Bytes charged to all three shares now.
    pub fn used_bytes(&self) -> usize {
        self.queued.used_bytes() + self.tails.used_bytes() + self.behind.used_bytes()
    }

    /// Ends all waiting for room.
    pub fn close(&self) {
        self.queued.close();
        self.behind.close();
    }
}

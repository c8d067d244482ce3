//! The bound of the broker's memory: shares, and charges that are given back when what they stand for is
//! dropped, wherever it was handed on to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

/// The least bound with which a record of 8 MiB can pass.
pub const LEAST_BYTES: usize = 64 << 20;

/// What the whole bound is divided into. An eighth is left for buffers of connections.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Batches that are not appended yet; when it is used up, connections are read no more.
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

    /// What one partition's tail may hold now; nothing while slow consumers hold on to more than there is.
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

    /// Nobody waits any more.
    pub fn close(&self) {
        self.queued.close();
        self.behind.close();
    }
}

/// One part of the bound.
#[derive(Debug)]
pub struct Share {
    limit_bytes: usize,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: usize,
    waiting: usize,
    closed: bool,
}

impl Share {
    fn new(limit_bytes: usize) -> Arc<Share> {
        Arc::new(Share {
            limit_bytes,
            state: Mutex::default(),
            freed: Condvar::new(),
        })
    }

    /// Its bound.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// What is charged now.
    pub fn used_bytes(&self) -> usize {
        self.lock().used_bytes
    }

    /// Charges at once, even beyond the bound: for what must not wait, and lets other things go instead.
    pub fn charge(self: &Arc<Share>, bytes: usize) -> Charge {
        self.lock().used_bytes += bytes;
        Charge {
            share: Arc::clone(self),
            bytes,
        }
    }

    /// Charges when there is room. None: there was none within `wait`, or the broker stops.
    pub fn wait_for(self: &Arc<Share>, bytes: usize, wait: Duration) -> Option<Charge> {
        let mut state = self.lock();
        if state.used_bytes + bytes > self.limit_bytes {
            let end = Instant::now() + wait;
            while state.used_bytes + bytes > self.limit_bytes && !state.closed {
                let left = end.checked_duration_since(Instant::now())?;
                state.waiting += 1;
                state = self
                    .freed
                    .wait_timeout(state, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                state.waiting -= 1;
            }
        }
        if state.closed {
            return None;
        }
        state.used_bytes += bytes;
        Some(Charge {
            share: Arc::clone(self),
            bytes,
        })
    }

    fn close(&self) {
        self.lock().closed = true;
        self.freed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a share in use, until this is dropped.
#[derive(Debug)]
pub struct Charge {
    share: Arc<Share>,
    bytes: usize,
}

impl Charge {
    /// Shared bytes that carry this charge: it ends with the last of their clones.
    pub fn onto(self, bytes: Vec<u8>) -> Bytes {
        struct Charged {
            bytes: Vec<u8>,
            _charge: Charge,
        }
        impl AsRef<[u8]> for Charged {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        Bytes::from_owner(Charged {
            bytes,
            _charge: self,
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut state = self.share.lock();
        state.used_bytes -= self.bytes;
        let somebody_waits = state.waiting > 0;
        drop(state);
        if somebody_waits {
            self.share.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_lasts_as_long_as_any_slice_of_its_bytes() {
        let share = Share::new(100);
        let bytes = share.charge(80).onto(vec![0; 80]);
        let slice = bytes.slice(7..9);
        drop(bytes);
        assert_eq!(share.used_bytes(), 80);
        drop(slice);
        assert_eq!(share.used_bytes(), 0);
    }

    #[test]
    fn who_waits_goes_on_when_there_is_room_and_gives_up_when_there_is_none() {
        let share = Share::new(100);
        let held = share.charge(60);
        assert!(share.wait_for(50, Duration::from_millis(5)).is_none());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| share.wait_for(50, Duration::from_secs(60)).is_some());
            drop(held);
            assert!(waiter.join().unwrap());
        });
        let held = share.charge(100);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| share.wait_for(1, Duration::from_secs(60)).is_some());
            share.close();
            assert!(!waiter.join().unwrap());
        });
        drop(held);
        assert_eq!(share.used_bytes(), 0);
    }
}

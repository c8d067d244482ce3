//! The queue of one appending thread, which appends to some of the partitions over a connection of
//! its own, one commit after the other. Batches that come during a commit gather for the next one,
//! so the busier a thread is the larger its appends are.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::batch::Batch;
use crate::partition::Partition;

/// The most bytes of one append, except that a batch that alone is longer is appended all the same.
const MOST_BYTES: usize = 1 << 20;
/// The linger ends when this many bytes wait.
const ENOUGH_BYTES: usize = 256 << 10;

/// The partitions that have batches for one appending thread.
pub struct AppendQueue {
    state: Mutex<State>,
    arrived: Condvar,
    linger: Duration,
}

#[derive(Default)]
struct State {
    /// Partitions with batches, in the order in which the first of them came.
    ready: VecDeque<Arc<Partition>>,
    /// Bytes of batches that came since the thread looked last.
    bytes: usize,
    stopping: bool,
    /// Whether the thread waits for the first batch.
    idle: bool,
    /// Whether the thread lingers, to let more batches come.
    lingering: bool,
}

/// The batches of one append, by partition.
pub type BatchesByPartition = Vec<(Arc<Partition>, Vec<Batch>)>;

impl AppendQueue {
    pub fn new(linger: Duration) -> AppendQueue {
        AppendQueue {
            state: Mutex::default(),
            arrived: Condvar::new(),
            linger,
        }
    }

    /// Notes that a batch has come for `partition`, which is on the list already if `listed`.
    pub fn arrived(&self, partition: &Arc<Partition>, bytes: usize, listed: bool) {
        let mut state = self.state.lock();
        state.bytes += bytes;
        if !listed {
            state.ready.push_back(Arc::clone(partition));
        }
        // A thread that is appending is not woken. It looks at the list when it comes back.
        let enough = state.lingering && state.bytes >= ENOUGH_BYTES;
        if state.idle || enough {
            state.idle = false;
            state.lingering = false;
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Waits for batches, and takes some from every partition that has any. `None` means that the
    /// queue is stopped and empty.
    pub fn next(&self) -> Option<BatchesByPartition> {
        let mut state = self.state.lock();
        while state.ready.is_empty() {
            if state.stopping {
                return None;
            }
            state.idle = true;
            self.arrived.wait(&mut state);
        }
        if !self.linger.is_zero() && !state.stopping {
            state.lingering = true;
            let still = |state: &mut State| state.bytes < ENOUGH_BYTES && !state.stopping;
            self.arrived.wait_while_for(&mut state, still, self.linger);
        }
        state.lingering = false;
        state.bytes = 0;
        let ready = std::mem::take(&mut state.ready);
        drop(state);
        let share = (MOST_BYTES / ready.len().max(1)).max(ENOUGH_BYTES / 4);
        let mut work = Vec::with_capacity(ready.len());
        let mut again = Vec::new();
        for partition in ready {
            let (batches, more) = partition.drain(share);
            if more {
                again.push(Arc::clone(&partition));
            }
            if !batches.is_empty() {
                work.push((partition, batches));
            }
        }
        // The partitions that have more go behind those that were listed meanwhile, so that none
        // waits for a busy one twice.
        self.state.lock().ready.extend(again);
        Some(work)
    }

    /// Ends the queue, and its thread, once it is empty.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.arrived.notify_all();
    }
}

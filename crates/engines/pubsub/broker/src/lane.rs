//! A lane: one thread and one connection that append to some of the partitions, one commit after
//! the other. While one is under way the next batches gather, so the busier it is the larger they
//! are.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::batch::Batch;
use crate::partition::Partition;

/// Bytes of one append at most, but for a batch that alone is longer.
const MOST_BYTES: usize = 1 << 20;
/// With so many bytes waiting the linger ends.
const ENOUGH_BYTES: usize = 256 << 10;

/// What the partitions of a lane have for it.
pub struct Lane {
    state: Mutex<State>,
    arrived: Condvar,
    linger: Duration,
}

#[derive(Default)]
struct State {
    /// Partitions with batches, in the order in which the first of them came.
    ready: VecDeque<Arc<Partition>>,
    /// Bytes that came since the last look.
    bytes: usize,
    stopping: bool,
    /// Whether the thread waits.
    idle: bool,
    /// Whether the thread waits for more.
    lingering: bool,
}

/// What is appended in one go.
pub type Work = Vec<(Arc<Partition>, Vec<Batch>)>;

impl Lane {
    pub fn new(linger: Duration) -> Lane {
        Lane {
            state: Mutex::default(),
            arrived: Condvar::new(),
            linger,
        }
    }

    /// A batch has come for `partition`, which is on the list already if `listed`.
    pub fn arrived(&self, partition: &Arc<Partition>, bytes: usize, listed: bool) {
        let mut state = self.state.lock();
        state.bytes += bytes;
        if !listed {
            state.ready.push_back(Arc::clone(partition));
        }
        let enough = state.lingering && state.bytes >= ENOUGH_BYTES;
        if state.idle || enough {
            state.idle = false;
            state.lingering = false;
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Waits for work, and takes from every partition that has some. None: the lane is stopped and
    /// empty.
    pub fn next(&self) -> Option<Work> {
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
            let (batches, more) = partition.take(share);
            if more {
                again.push(Arc::clone(&partition));
            }
            if !batches.is_empty() {
                work.push((partition, batches));
            }
        }
        self.state.lock().ready.extend(again);
        Some(work)
    }

    /// Ends the lane once it is empty.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.arrived.notify_all();
    }
}

//! One partition that this broker holds the lease of.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::batch::Batch;
use crate::error::not_mine;
use crate::lane::Lane;
use crate::ledger::Ledger;
use crate::tail::{Tail, Waiter};
use dyno_pubsub::Error;
use dyno_pubsub::record::Codec;

/// Topic and partition.
pub type Key = (i32, i32);

/// A partition, from the moment its lease is taken until it is lost or given back.
pub struct Partition {
    pub key: Key,
    pub epoch: i64,
    /// How the topic's rows are compressed.
    pub codec: Codec,
    lane: Arc<Lane>,
    queue: Mutex<Queue>,
    pub tail: Mutex<Tail>,
    /// Only its lane's thread asks it.
    pub ledger: Mutex<Ledger>,
    closed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Batch>,
    /// Whether the lane has it on its list.
    listed: bool,
    closed: Option<Error>,
}

impl Partition {
    pub fn new(
        key: Key,
        epoch: i64,
        codec: Codec,
        offsets: (i64, i64),
        lane: Arc<Lane>,
    ) -> Partition {
        Partition {
            key,
            epoch,
            codec,
            lane,
            queue: Mutex::default(),
            tail: Mutex::new(Tail::new(offsets.0, offsets.1)),
            ledger: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Puts a batch in line.
    pub fn submit(self: &Arc<Partition>, batch: Batch) {
        let bytes = batch.body.len();
        let mut queue = self.queue.lock();
        if let Some(error) = &queue.closed {
            return batch.ack.refused(error);
        }
        queue.batches.push_back(batch);
        let listed = std::mem::replace(&mut queue.listed, true);
        drop(queue);
        self.lane.arrived(self, bytes, listed);
    }

    /// For the lane, that has it on its list: the batches that came first, up to `most_bytes` but
    /// at least one, and whether more are left.
    pub fn take(&self, most_bytes: usize) -> (Vec<Batch>, bool) {
        let mut queue = self.queue.lock();
        let mut bytes = 0;
        let count = queue
            .batches
            .iter()
            .take_while(|batch| {
                bytes += batch.body.len();
                bytes <= most_bytes
            })
            .count()
            .max(1)
            .min(queue.batches.len());
        let taken = queue.batches.drain(..count).collect();
        let more = !queue.batches.is_empty();
        queue.listed = more;
        (taken, more)
    }

    /// Answers a fetch now or later. Given back: its rows are not in memory.
    pub fn fetch(&self, waiter: Waiter) -> Option<Waiter> {
        let mut tail = self.tail.lock();
        if self.is_closed() {
            drop(tail);
            waiter.ack.refused(&not_mine(self.key));
            return None;
        }
        tail.fetch(waiter, Instant::now())
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Nothing more is taken; what waits is refused. What is being committed is still acknowledged.
    pub fn close(&self, error: &Error) {
        let waiting = {
            let mut queue = self.queue.lock();
            queue.closed.get_or_insert_with(|| error.clone());
            std::mem::take(&mut queue.batches)
        };
        let mut tail = self.tail.lock();
        self.closed.store(true, Ordering::Release);
        tail.refuse_waiters(error);
        drop(tail);
        for batch in waiting {
            batch.ack.refused(error);
        }
    }

    /// Nothing more is taken; what waits is still appended.
    pub fn close_door(&self, error: &Error) {
        self.queue
            .lock()
            .closed
            .get_or_insert_with(|| error.clone());
    }

    /// Whether nothing waits to be appended.
    pub fn is_drained(&self) -> bool {
        let queue = self.queue.lock();
        queue.batches.is_empty() && !queue.listed
    }
}

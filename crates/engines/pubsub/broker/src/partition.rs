//! One partition that this broker holds the lease of.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::append_queue::AppendQueue;
use crate::batch::Batch;
use crate::error::not_mine;
use crate::ledger::Ledger;
use crate::tail::{Tail, Waiter};
use dyno_pubsub::record::Codec;
use dyno_pubsub::{Error, TopicPartition};

/// A partition, from the moment its lease is taken until it is lost or given back.
pub struct Partition {
    pub key: TopicPartition,
    pub epoch: i64,
    /// How the topic's rows are compressed.
    pub codec: Codec,
    append_queue: Arc<AppendQueue>,
    queue: Mutex<Queue>,
    pub tail: Mutex<Tail>,
    /// Only its appending thread uses it.
    pub ledger: Mutex<Ledger>,
    closed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Batch>,
    /// Whether the append queue has it on its list.
    listed: bool,
    closed: Option<Error>,
}

impl Partition {
    pub fn new(
        key: TopicPartition,
        epoch: i64,
        codec: Codec,
        offsets: (i64, i64),
        append_queue: Arc<AppendQueue>,
    ) -> Partition {
        Partition {
            key,
            epoch,
            codec,
            append_queue,
            queue: Mutex::default(),
            tail: Mutex::new(Tail::new(offsets.0, offsets.1)),
            ledger: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Queues a batch for the appending thread, or refuses it if the partition is closed.
    pub fn submit(self: &Arc<Partition>, batch: Batch) {
        let bytes = batch.body.len();
        let mut queue = self.queue.lock();
        if let Some(error) = &queue.closed {
            return batch.ack.refused(error);
        }
        queue.batches.push_back(batch);
        let listed = std::mem::replace(&mut queue.listed, true);
        drop(queue);
        self.append_queue.arrived(self, bytes, listed);
    }

    /// Removes batches for the appending thread, whose queue has the partition on its list: those
    /// that came first, up to `most_bytes` but at least one. Also returns whether more are left.
    pub fn drain(&self, most_bytes: usize) -> (Vec<Batch>, bool) {
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
        // Decided under the same lock as `submit` decides whether to list the partition, so it is
        // never on the list twice, and never off it with batches left.
        queue.listed = more;
        (taken, more)
    }

    /// Answers a fetch now or later. Returns it if its rows are not in memory.
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

    /// Refuses what waits and what comes later. What is being committed is still acknowledged.
    pub fn close(&self, error: &Error) {
        let waiting = {
            let mut queue = self.queue.lock();
            queue.closed.get_or_insert_with(|| error.clone());
            std::mem::take(&mut queue.batches)
        };
        let mut tail = self.tail.lock();
        // Set under the tail's lock, which `fetch` holds when it looks. So no fetch becomes a
        // waiter after the waiters were refused.
        self.closed.store(true, Ordering::Release);
        tail.refuse_waiters(error);
        drop(tail);
        for batch in waiting {
            batch.ack.refused(error);
        }
    }

    /// Refuses the batches that come from now on. Those that wait are still appended.
    pub fn refuse_appends(&self, error: &Error) {
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

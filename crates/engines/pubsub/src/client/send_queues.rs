//! Records that wait to be sent. Each partition has a queue, in which records become batches in the
//! order in which they were sent. A transport (a connection to the server or to a broker) pops
//! batches and reports their outcomes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::chain::Chain;
use super::options::ProducerOptions;
use super::receipt::{Outcome, Receipt};
use crate::error::{Code, Error, Result};
use crate::record;

/// A batch that is closed to further records, on its way to the log.
pub struct SealedBatch {
    /// The partition that its records go to.
    pub partition: i32,
    /// The number of the batch in its queue, from 0.
    pub number: u64,
    /// The records, one after the other, uncompressed.
    pub body: Vec<u8>,
    /// How many records `body` holds.
    pub records: i64,
    /// When the transport must stop trying and report a failure.
    pub deadline: Instant,
    /// The hash chain of a named producer up to the end of this batch, by which a producer that
    /// starts again proves that it sends the same records.
    pub(crate) chain: Option<Chain>,
    outcome: Arc<Outcome>,
}

/// The queues of a producer, one for each partition.
pub struct SendQueues {
    state: Mutex<State>,
    /// Wakes transports: a batch may be ready.
    ready: Condvar,
    /// Wakes senders that wait for room, and `flush`: a batch was finished.
    finished: Condvar,
    options: ProducerOptions,
}

struct State {
    queues: Vec<SendQueue>,
    buffered_bytes: usize,
    /// The partition that records without a key go to until its batch is full.
    sticky: usize,
    flushing: usize,
    closed: bool,
    /// The first failure since the last flush.
    failure: Option<Error>,
}

#[derive(Default)]
struct SendQueue {
    /// Batches that are full and were not popped yet, the oldest first.
    full: VecDeque<OpenBatch>,
    /// The batch that takes records.
    open: OpenBatch,
    sealed: u64,
    in_flight: usize,
    /// The hash chain over all records up to the last one of `open`, if the producer has a name.
    chain: Option<Chain>,
}

#[derive(Default)]
struct OpenBatch {
    body: Vec<u8>,
    records: i64,
    since: Option<Instant>,
    /// Set when the batch is closed.
    chain: Option<Chain>,
    outcome: Arc<Outcome>,
}

impl State {
    /// Adds a record, which `encode` appends to the open batch of a queue. The second value says
    /// whether a transport must be woken because the batch has begun, and so has a time at which it
    /// is due, or is full.
    fn add(
        &mut self,
        options: &ProducerOptions,
        partition: Option<usize>,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<(Receipt, bool)> {
        let at = partition.unwrap_or(self.sticky);
        let queue = &mut self.queues[at];
        let open = &mut queue.open;
        let before = open.body.len();
        encode(&mut open.body)?;
        let receipt = Receipt {
            outcome: open.outcome.clone(),
            partition: i32::try_from(at).unwrap_or(i32::MAX),
            index: open.records,
        };
        if let Some(chain) = &mut queue.chain {
            chain.add(record::without_time(&open.body[before..]));
        }
        self.buffered_bytes += open.body.len() - before;
        open.records += 1;
        let first = open.since.is_none();
        open.since.get_or_insert_with(Instant::now);
        let full = open.is_full(options);
        if full {
            let full = queue.close_open();
            queue.full.push_back(full);
            if partition.is_none() {
                self.sticky = self.after(at);
            }
        }
        Ok((receipt, first || full))
    }
}

impl SendQueues {
    pub(super) fn new(partitions: usize, options: ProducerOptions) -> Self {
        let state = State {
            queues: std::iter::repeat_with(SendQueue::default)
                .take(partitions)
                .collect(),
            buffered_bytes: 0,
            sticky: 0,
            flushing: 0,
            closed: false,
            failure: None,
        };
        Self {
            state: Mutex::new(state),
            ready: Condvar::new(),
            finished: Condvar::new(),
            options,
        }
    }

    /// Continues the chain that the partition has stored under this producer's name.
    pub(super) fn continue_chain(&self, partition: usize, chain: Chain) {
        if let Some(queue) = self.lock().queues.get_mut(partition) {
            queue.chain = Some(chain);
        }
    }

    /// Puts a record into a queue. It blocks while the buffer is full, for as long as a batch is
    /// tried at most.
    pub(super) fn push(
        &self,
        partition: Option<usize>,
        time_us: i64,
        key: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
        value: &[u8],
    ) -> Result<Receipt> {
        let bytes = record::encoded_bytes(key, headers, value);
        let mut state = self.room_for(bytes)?;
        let (receipt, news) = state.add(&self.options, partition, |body| {
            record::encode(body, time_us, key, headers, value)
        })?;
        drop(state);
        if news {
            self.ready.notify_all();
        }
        Ok(receipt)
    }

    /// Puts records into one queue under one lock, so that an append does not take the first of
    /// them before the last is there. Returns a receipt for each, in order. If one record is too
    /// large, none of them is taken.
    pub(super) fn push_all<V: AsRef<[u8]>>(
        &self,
        partition: Option<usize>,
        time_us: i64,
        values: &[V],
    ) -> Result<Vec<Receipt>> {
        let sizes = values
            .iter()
            .map(|v| record::encoded_bytes(None, &[], v.as_ref()));
        let (largest, bytes) = sizes.fold((0, 0), |(most, sum), n| (most.max(n), sum + n));
        record::check_length(largest)?;
        let mut state = self.room_for(bytes)?;
        // The partition is chosen once. If the batch fills up on the way, `add` must not send the
        // rest of the values elsewhere.
        let at = partition.unwrap_or(state.sticky);
        let mut receipts = Vec::with_capacity(values.len());
        for value in values {
            let (receipt, _) = state.add(&self.options, Some(at), |body| {
                record::encode(body, time_us, None, &[], value.as_ref())
            })?;
            receipts.push(receipt);
        }
        if partition.is_none() {
            state.sticky = state.after(at);
        }
        drop(state);
        self.ready.notify_all();
        Ok(receipts)
    }

    fn room_for(&self, bytes: usize) -> Result<MutexGuard<'_, State>> {
        let until = Instant::now() + self.options.delivery_timeout;
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err(Error::new(Code::Closed, "the producer is closed"));
            }
            // A record that is larger than the whole buffer is let in when the buffer is empty,
            // because it would wait for ever otherwise.
            if state.buffered_bytes == 0
                || state.buffered_bytes + bytes <= self.options.buffer_bytes
            {
                return Ok(state);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let waiting = state.buffered_bytes;
                let text =
                    format_args!("{waiting} bytes wait to be acknowledged, and no more is taken");
                return Err(Error::new(Code::Overloaded, text));
            }
            self.finished.wait_for(&mut state, left);
        }
    }

    /// Removes the next batch for a transport, whose share are these partitions. A queue may have
    /// `in_flight_max` batches under way. It waits for a batch until `until`, and returns `None`
    /// then, or when the producer is closed and nothing is left.
    ///
    /// Of the batches that are due the oldest one is taken, so that a busy partition does not
    /// starve the others. A batch that is not full is due after `linger`, or at once while a flush
    /// waits.
    pub fn pop(
        &self,
        share: &[usize],
        in_flight_max: usize,
        until: Option<Instant>,
    ) -> Option<SealedBatch> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let hurry = state.flushing > 0 || state.closed;
            let mut wake = until;
            let mut oldest: Option<(Instant, usize)> = None;
            let mut idle = true;
            for at in share.iter().copied() {
                let queue = &state.queues[at];
                let Some(since) = queue.since() else { continue };
                idle = false;
                // `finish` wakes us when a batch of this queue comes back, so it needs no time of
                // its own.
                if queue.in_flight >= in_flight_max {
                    continue;
                }
                let due = since + self.options.linger;
                if hurry || due <= now || !queue.full.is_empty() {
                    if oldest.is_none_or(|(then, _)| since < then) {
                        oldest = Some((since, at));
                    }
                } else {
                    wake = Some(wake.map_or(due, |at| at.min(due)));
                }
            }
            if let Some((since, at)) = oldest {
                return Some(state.seal(at, since + self.options.delivery_timeout));
            }
            if state.closed && idle || until.is_some_and(|until| until <= now) {
                return None;
            }
            self.wait(&mut state, wake, now);
        }
    }

    fn wait(&self, state: &mut MutexGuard<'_, State>, wake: Option<Instant>, now: Instant) {
        match wake {
            Some(at) => {
                let pause = at
                    .saturating_duration_since(now)
                    .max(Duration::from_micros(50));
                self.ready.wait_for(state, pause);
            }
            None => self.ready.wait(state),
        }
    }

    /// Reports what became of a batch: the offset of its first record, or why it was given up. An
    /// offset of -1 means that the batch is in the log, but at an offset that is not known.
    pub fn finish(&self, sealed: SealedBatch, base_offset: Result<i64>) {
        let mut state = self.lock();
        if let Err(error) = &base_offset {
            state.failure.get_or_insert_with(|| error.clone());
        }
        let queue = usize::try_from(sealed.partition).unwrap_or(0);
        state.queues[queue].in_flight -= 1;
        state.buffered_bytes -= sealed.body.len();
        let hurry = state.queues[queue].since().is_some();
        drop(state);
        // The receipts are settled before anything is woken, so that a flush which returns finds
        // each settled.
        sealed.outcome.set(base_offset);
        self.finished.notify_all();
        if hurry {
            self.ready.notify_all();
        }
    }

    /// Sends everything that waits without lingering, and returns when all of it is finished, with
    /// the first failure since the last flush.
    pub(super) fn flush(&self) -> Result<()> {
        let mut state = self.lock();
        // While this is above zero every batch is due at once, so that a flush does not wait for
        // the linger.
        state.flushing += 1;
        self.ready.notify_all();
        while state.buffered_bytes > 0 {
            self.finished.wait(&mut state);
        }
        state.flushing -= 1;
        state.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
        self.finished.notify_all();
    }

    /// Whether the producer was closed. Transports go on until the queues are empty.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// The partition that records without a key go to after this one: the next without a full
    /// batch, so that partitions of a cluster that is down do not collect them. If all have one,
    /// the next.
    fn after(&self, at: usize) -> usize {
        let next = (1..=self.queues.len()).map(|step| (at + step) % self.queues.len());
        let mut free = next.filter(|queue| self.queues[*queue].full.is_empty());
        free.next().unwrap_or((at + 1) % self.queues.len())
    }

    fn seal(&mut self, at: usize, deadline: Instant) -> SealedBatch {
        // The sticky partition has moved on above, if it has to: a record without a key that comes
        // now begins a batch elsewhere instead of waiting behind this one.
        let queue = &mut self.queues[at];
        let filled = match queue.full.pop_front() {
            Some(filled) => filled,
            None => {
                if self.sticky == at {
                    self.sticky = self.after(at);
                }
                self.queues[at].close_open()
            }
        };
        let queue = &mut self.queues[at];
        let number = queue.sealed;
        queue.sealed += 1;
        queue.in_flight += 1;
        SealedBatch {
            partition: i32::try_from(at).unwrap_or(i32::MAX),
            number,
            body: filled.body,
            records: filled.records,
            deadline,
            chain: filled.chain,
            outcome: filled.outcome,
        }
    }
}

impl SendQueue {
    /// Closes the open batch and begins another.
    fn close_open(&mut self) -> OpenBatch {
        let mut taken = std::mem::take(&mut self.open);
        taken.chain = self.chain.clone();
        taken
    }

    /// When the first record of the oldest batch came; `None` if the queue is empty.
    fn since(&self) -> Option<Instant> {
        self.full.front().unwrap_or(&self.open).since
    }
}

impl OpenBatch {
    fn is_full(&self, options: &ProducerOptions) -> bool {
        self.body.len() >= options.batch_bytes
            || usize::try_from(self.records).unwrap_or(usize::MAX) >= options.batch_records
    }
}

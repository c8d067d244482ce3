//! What waits to be sent: a lane per partition, in which records become batches in the order in which they
//! came. Carriers (a connection to the server, one to a broker) take batches out and report what became of
//! them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::chain::Chain;
use super::options::ProducerOptions;
use super::receipt::{Outcome, Receipt};
use crate::error::{Code, Error, Result};
use crate::record;

/// A batch on its way.
pub struct Sealed {
    /// Its partition.
    pub partition: i32,
    /// Counts the batches of the lane, from 0.
    pub number: u64,
    /// The records, uncompressed.
    pub body: Vec<u8>,
    /// How many.
    pub records: i64,
    /// When it has to be given up.
    pub deadline: Instant,
    /// What the partition then has of a producer with a name.
    pub(crate) chain: Option<Chain>,
    outcome: Arc<Outcome>,
}

/// All lanes of a producer.
pub struct Lanes {
    state: Mutex<State>,
    /// Something may be ready, for carriers.
    ready: Condvar,
    /// Something was finished, for senders and flushers.
    finished: Condvar,
    options: ProducerOptions,
}

struct State {
    lanes: Vec<Lane>,
    buffered_bytes: usize,
    /// Where records without a key go until that batch is full.
    sticky: usize,
    flushing: usize,
    closed: bool,
    /// The first failure since the last flush.
    failure: Option<Error>,
}

#[derive(Default)]
struct Lane {
    /// Batches that are full.
    full: VecDeque<Filling>,
    /// The one that takes records.
    open: Filling,
    sealed: u64,
    in_flight: usize,
    /// Over all records up to the last of `open`, where the producer has a name.
    chain: Option<Chain>,
}

#[derive(Default)]
struct Filling {
    body: Vec<u8>,
    records: i64,
    since: Option<Instant>,
    /// Set when the batch takes no more records.
    chain: Option<Chain>,
    outcome: Arc<Outcome>,
}

impl State {
    /// Adds a record that `encode` appends to the open batch of a lane. Says too whether a carrier should look: the
    /// batch has begun, or is full.
    fn add(
        &mut self,
        options: &ProducerOptions,
        partition: Option<usize>,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<(Receipt, bool)> {
        let at = partition.unwrap_or(self.sticky);
        let lane = &mut self.lanes[at];
        let open = &mut lane.open;
        let before = open.body.len();
        encode(&mut open.body)?;
        let receipt = Receipt {
            outcome: open.outcome.clone(),
            partition: i32::try_from(at).unwrap_or(i32::MAX),
            index: open.records,
        };
        if let Some(chain) = &mut lane.chain {
            chain.add(record::without_time(&open.body[before..]));
        }
        self.buffered_bytes += open.body.len() - before;
        open.records += 1;
        let first = open.since.is_none();
        open.since.get_or_insert_with(Instant::now);
        let full = open.is_full(options);
        if full {
            let full = lane.take_open();
            lane.full.push_back(full);
            if partition.is_none() {
                self.sticky = self.after(at);
            }
        }
        Ok((receipt, first || full))
    }
}

impl Lanes {
    pub(super) fn new(partitions: usize, options: ProducerOptions) -> Self {
        let state = State {
            lanes: std::iter::repeat_with(Lane::default)
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

    /// Goes on with what a partition has of this producer's name.
    pub(super) fn go_on(&self, partition: usize, chain: Chain) {
        if let Some(lane) = self.lock().lanes.get_mut(partition) {
            lane.chain = Some(chain);
        }
    }

    /// Puts a record into a lane. Blocks while the buffer is full, but not longer than a batch is tried.
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

    /// Puts records into one lane in one go, so that no append takes the first of them before the last is
    /// there. The receipts are those of all of them, in order; none is taken when one is too large.
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
            let waited = self.finished.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The next batch of a carrier's lanes, which are those of these partitions and may have
    /// `in_flight_max` batches under way each. Waits for one until `until`; `None` then, and when the
    /// producer is closed and nothing is left.
    pub fn take(
        &self,
        share: &[usize],
        in_flight_max: usize,
        until: Option<Instant>,
    ) -> Option<Sealed> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let hurry = state.flushing > 0 || state.closed;
            let mut wake = until;
            let mut oldest: Option<(Instant, usize)> = None;
            let mut idle = true;
            for at in share.iter().copied() {
                let lane = &state.lanes[at];
                let Some(since) = lane.since() else { continue };
                idle = false;
                if lane.in_flight >= in_flight_max {
                    continue;
                }
                let due = since + self.options.linger;
                if hurry || due <= now || !lane.full.is_empty() {
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
            state = self.wait(state, wake, now);
        }
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        wake: Option<Instant>,
        now: Instant,
    ) -> MutexGuard<'a, State> {
        match wake {
            Some(at) => {
                let pause = at
                    .saturating_duration_since(now)
                    .max(Duration::from_micros(50));
                let waited = self.ready.wait_timeout(state, pause);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self
                .ready
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Reports what became of a batch: the offset of its first record (-1: there, but not known where), or why it
    /// was given up.
    pub fn finish(&self, sealed: Sealed, base_offset: Result<i64>) {
        let mut state = self.lock();
        if let Err(error) = &base_offset {
            state.failure.get_or_insert_with(|| error.clone());
        }
        let lane = usize::try_from(sealed.partition).unwrap_or(0);
        state.lanes[lane].in_flight -= 1;
        state.buffered_bytes -= sealed.body.len();
        let hurry = state.lanes[lane].since().is_some();
        drop(state);
        sealed.outcome.set(base_offset);
        self.finished.notify_all();
        if hurry {
            self.ready.notify_all();
        }
    }

    /// Sends what waits, without lingering, and waits for all of it.
    pub(super) fn flush(&self) -> Result<()> {
        let mut state = self.lock();
        state.flushing += 1;
        self.ready.notify_all();
        while state.buffered_bytes > 0 {
            state = self
                .finished
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.flushing -= 1;
        state.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
        self.finished.notify_all();
    }

    /// Whether the producer was closed; carriers go on until nothing is left.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Where records without a key go after this lane: the next one in which no full batch waits, so that
    /// those of a dead cluster do not swallow them. Any is as good as another when all are full.
    fn after(&self, at: usize) -> usize {
        let next = (1..=self.lanes.len()).map(|step| (at + step) % self.lanes.len());
        let mut free = next.filter(|lane| self.lanes[*lane].full.is_empty());
        free.next().unwrap_or((at + 1) % self.lanes.len())
    }

    fn seal(&mut self, at: usize, deadline: Instant) -> Sealed {
        let lane = &mut self.lanes[at];
        let filled = match lane.full.pop_front() {
            Some(filled) => filled,
            None => {
                if self.sticky == at {
                    self.sticky = self.after(at);
                }
                self.lanes[at].take_open()
            }
        };
        let lane = &mut self.lanes[at];
        let number = lane.sealed;
        lane.sealed += 1;
        lane.in_flight += 1;
        Sealed {
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

impl Lane {
    /// Ends the open batch.
    fn take_open(&mut self) -> Filling {
        let mut taken = std::mem::take(&mut self.open);
        taken.chain = self.chain.clone();
        taken
    }

    /// Since when its first batch has waited.
    fn since(&self) -> Option<Instant> {
        self.full.front().unwrap_or(&self.open).since
    }
}

impl Filling {
    fn is_full(&self, options: &ProducerOptions) -> bool {
        self.body.len() >= options.batch_bytes
            || usize::try_from(self.records).unwrap_or(usize::MAX) >= options.batch_records
    }
}

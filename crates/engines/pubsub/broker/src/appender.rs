//! A thread that appends: it takes the batches that wait, commits them, publishes them to consumers
//! and acknowledges them to producers.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::wire::RowHead;
use dyno_pubsub::{Appended, Code, Error, Retry, TopicPartition};
use dyno_random::backoff;

use crate::append_queue::AppendQueue;
use crate::batch::Batch;
use crate::chunk::Chunk;
use crate::counters::{Counters, add};
use crate::error::not_mine;
use crate::ledger::{ProducerState, Verdict};
use crate::link::Link;
use crate::memory::Memory;
use crate::merge::Append;
use crate::partition::Partition;

/// The first and the longest pause before an append is sent again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));

const PRODUCERS: &str = "\
    SELECT producer_id, sequence, last_base, last_first FROM pubsub.producers \
     WHERE topic_id = $1 AND partition = $2 AND producer_id = ANY ($3)";
/// The largest id that a producer was given.
const LAST_GIVEN: &str =
    "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pubsub.producer_ids";

/// An appending thread, with its queue and the session that it appends over.
pub struct Appender {
    pub queue: Arc<AppendQueue>,
    pub link: Link,
    pub memory: Memory,
    pub counters: Arc<Counters>,
    /// Set when the broker stops. From then on an append whose outcome is unknown is not sent
    /// again.
    pub abandon: Arc<AtomicBool>,
}

type Prepared = (Arc<Partition>, Append);

impl Appender {
    /// Appends until the queue is stopped and empty.
    pub fn run(mut self) {
        while let Some(work) = self.queue.next() {
            let mut prepared: Vec<Prepared> = Vec::with_capacity(work.len());
            for (partition, batches) in work {
                if let Some(append) = self.prepare(&partition, batches) {
                    prepared.push((partition, append));
                }
            }
            // Always in the same order, or two transactions might wait for each other.
            prepared.sort_by_key(|(partition, _)| partition.key);
            if prepared.len() > 1 {
                prepared = self.append_together(prepared);
            }
            for (partition, append) in prepared {
                self.append_alone(&partition, append);
            }
        }
    }

    /// Separates batches that come next from repetitions, and merges the former into one append.
    /// Returns `None` if nothing is left to append.
    fn prepare(&mut self, partition: &Partition, batches: Vec<Batch>) -> Option<Append> {
        let batches = match self.learn_producers(partition, &batches) {
            Ok(strangers) => self.refuse_strangers(batches, &strangers),
            Err(error) => {
                self.refuse_all(batches, &error);
                return None;
            }
        };
        let mut next = Vec::with_capacity(batches.len());
        // The sequences of each producer that are in `next` already.
        let mut pending: HashMap<i64, RangeInclusive<i64>> = HashMap::new();
        let mut again = Vec::new();
        for batch in batches {
            let run = pending.get(&batch.producer_id);
            let verdict = partition.ledger.lock().judge(&batch, run);
            match verdict {
                Verdict::Next => {
                    let first = run.map_or(batch.first_sequence, |run| *run.start());
                    pending.insert(batch.producer_id, first..=batch.last_sequence());
                    next.push(batch);
                }
                Verdict::Pending(within) => again.push((batch, within)),
                Verdict::Duplicate(offset) => self.acknowledge_duplicate(partition, &batch, offset),
                Verdict::Gap { expected } => {
                    add(&self.counters.refused_batches, 1);
                    batch.ack.refused(&Error::new(
                        Code::SequenceGap,
                        format_args!(
                            "producer {} sent sequence {} where {expected} comes next",
                            batch.producer_id, batch.first_sequence
                        ),
                    ));
                }
            }
        }
        if next.is_empty() {
            return None;
        }
        let bytes = next.iter().map(|batch| batch.body.len()).sum();
        // The batches were charged when they came. Their rows are charged to the tails before they
        // are made, so that the copy is counted while both exist.
        let charge = self.memory.tails.charge(bytes);
        let mut append = Append::from_batches(next, partition.codec, charge);
        for (batch, within) in again {
            append.acknowledge_with(&batch, within);
        }
        (!append.is_empty()).then_some(append)
    }

    /// Asks the database about producers that the ledger does not know. Returns the ids among them
    /// that were not given to any producer: the database would refuse an append with one of them as
    /// a whole.
    fn learn_producers(
        &mut self,
        partition: &Partition,
        batches: &[Batch],
    ) -> Result<HashSet<i64>, Error> {
        let ids = batches.iter().map(|batch| batch.producer_id);
        let unknown = partition.ledger.lock().begin_learning(ids);
        if unknown.is_empty() {
            return Ok(HashSet::new());
        }
        let TopicPartition {
            topic_id,
            partition: number,
        } = partition.key;
        let (rows, last_given) = self.insist(partition, |link| {
            link.run(|connection| {
                let client = connection.client();
                let rows = client
                    .query(PRODUCERS, &[&topic_id, &number, &unknown])
                    .map_err(Error::statement("look producers up"))?;
                let last_given = client
                    .query_one(LAST_GIVEN, &[])
                    .map_err(Error::statement("look the last producer id up"))?;
                Ok((rows, last_given.get::<_, i64>(0)))
            })
        })?;
        let found: HashSet<i64> = rows.iter().map(|row| row.get(0)).collect();
        let others = unknown.into_iter().filter(|id| !found.contains(id));
        let (strangers, new): (HashSet<i64>, HashSet<i64>) =
            others.partition(|id| *id > last_given);
        let mut ledger = partition.ledger.lock();
        // Strangers are not remembered: their ids will be given to producers some day.
        for id in new {
            ledger.set(id, ProducerState::NEW);
        }
        for row in rows {
            let state = ProducerState {
                last_sequence: row.get(1),
                last_base: row.get(2),
                last_first: row.get(3),
            };
            ledger.set(row.get(0), state);
        }
        Ok(strangers)
    }

    /// Refuses the batches of these producers, and returns those of the others.
    fn refuse_strangers(&self, batches: Vec<Batch>, strangers: &HashSet<i64>) -> Vec<Batch> {
        let is_known = |batch: &Batch| !strangers.contains(&batch.producer_id);
        let (known, refused): (Vec<Batch>, Vec<Batch>) = batches.into_iter().partition(is_known);
        for batch in refused {
            add(&self.counters.refused_batches, 1);
            batch.ack.refused(&Error::new(
                Code::BadArgument,
                format_args!("no producer was given the id {}", batch.producer_id),
            ));
        }
        known
    }

    fn acknowledge_duplicate(&mut self, partition: &Partition, batch: &Batch, offset: Option<i64>) {
        add(&self.counters.duplicate_batches, 1);
        let found = match offset {
            Some(offset) => Ok(offset),
            None => self.find_offset(partition, batch),
        };
        match found {
            Ok(offset) => batch.ack.produced(offset, true),
            Err(error) => batch.ack.refused(&error),
        }
    }

    /// Asks the database for the offset of records that were appended before the producer's last
    /// run.
    fn find_offset(&mut self, partition: &Partition, batch: &Batch) -> Result<i64, Error> {
        let TopicPartition {
            topic_id,
            partition: number,
        } = partition.key;
        self.link.run(|connection| {
            connection
                .client()
                .query_one(
                    "SELECT pubsub.offset_of_sequence($1, $2, $3, $4, $5)",
                    &[
                        &topic_id,
                        &number,
                        &batch.producer_id,
                        &batch.first_sequence,
                        &i64::MAX,
                    ],
                )
                .map(|row| row.get(0))
                .map_err(Error::statement("find the offset of a duplicate"))
        })
    }

    /// Appends to several partitions in one transaction. The appends that it returns were not, or
    /// not certainly, committed; appending them one by one tells which is the case.
    fn append_together(&mut self, mut prepared: Vec<Prepared>) -> Vec<Prepared> {
        let began = Instant::now();
        let done = self.link.run(|connection| {
            let mut batches: Vec<_> = prepared
                .iter_mut()
                .map(|(partition, append)| (partition.key, partition.epoch, &mut append.rows))
                .collect();
            connection.append_all(&mut batches)
        });
        self.waited(began);
        match done {
            // The error may be that of one partition, or the answer may be lost. Each append is
            // sent again by itself, and one that was committed comes back as known.
            Err(_) => prepared,
            Ok(done) => {
                for ((partition, append), done) in prepared.into_iter().zip(done) {
                    self.finish(&partition, append, done);
                }
                Vec::new()
            }
        }
    }

    /// Appends to one partition, and sends the append again until its outcome is known. Repeating
    /// it is safe, because the function in the database recognises what it has.
    fn append_alone(&mut self, partition: &Partition, mut append: Append) {
        let TopicPartition {
            topic_id,
            partition: number,
        } = partition.key;
        let began = Instant::now();
        let done = self.insist(partition, |link| {
            link.run(|connection| {
                connection.append(topic_id, number, partition.epoch, &mut append.rows)
            })
        });
        self.waited(began);
        match done {
            Ok(done) => self.finish(partition, append, done),
            Err(error) => {
                let error = match error.kind() {
                    Code::Fenced => not_mine(partition.key),
                    // The database knows one producer otherwise than the ledger did, and says so of
                    // the append as a whole. The batches of the others are good. All are to be sent
                    // again: the ledger asks the database anew, and refuses that producer alone.
                    Code::SequenceGap if append.runs.len() > 1 => {
                        let retry = match error.retry() {
                            Retry::Never => Retry::Safe,
                            other => other,
                        };
                        Error::with_retry(Code::Conflict, retry, error.text())
                    }
                    _ => error,
                };
                // Another broker holds the partition, or it is gone. Nothing more can be appended
                // under this epoch, so what waits is refused now instead of failing one by one.
                if matches!(error.kind(), Code::Fenced | Code::UnknownTopic) {
                    partition.close(&error);
                }
                partition.ledger.lock().clear();
                add(&self.counters.refused_batches, append.acks.len());
                append.refuse(&error);
            }
        }
    }

    /// Asks again while the outcome is in doubt or the server is away, for as long as the broker
    /// holds the partition.
    fn insist<T>(
        &mut self,
        partition: &Partition,
        mut ask: impl FnMut(&mut Link) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut failures = 0;
        let mut in_doubt = false;
        loop {
            let error = match ask(&mut self.link) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            in_doubt |= error.retry() == Retry::Unknown;
            let passing = error.retry() == Retry::Unknown
                || matches!(error.kind(), Code::ServerLost | Code::Conflict);
            if !passing || self.abandon.load(Ordering::Acquire) || partition.is_closed() {
                // An error after an unknown outcome does not say that nothing was done.
                let fenced = matches!(error.kind(), Code::Fenced | Code::UnknownTopic);
                if in_doubt && !fenced {
                    return Err(Error::with_retry(
                        error.kind(),
                        Retry::Unknown,
                        error.text(),
                    ));
                }
                return Err(error);
            }
            add(&self.counters.retried_appends, 1);
            failures += 1;
            thread::sleep(backoff(PAUSES.0, PAUSES.1, failures));
        }
    }

    /// Handles the database's answer to an append.
    fn finish(&self, partition: &Partition, append: Append, done: Appended) {
        match done {
            Appended::New {
                base_offset,
                appended_at_us,
            } => self.committed(partition, append, base_offset, Some(appended_at_us)),
            Appended::Known { offsets } => match append.whole_at(&offsets) {
                // An earlier attempt was committed after all.
                Some(base_offset) => self.committed(partition, append, base_offset, None),
                None => {
                    partition.ledger.lock().clear();
                    append.acknowledge_known(&offsets);
                }
            },
        }
    }

    /// Publishes the rows to consumers, then acknowledges to producers. If the time of the append
    /// is not known, consumers read the rows from the database.
    fn committed(
        &self,
        partition: &Partition,
        mut append: Append,
        base_offset: i64,
        appended_at_us: Option<i64>,
    ) {
        let heads: Vec<RowHead> = append.heads(base_offset, appended_at_us.unwrap_or(0));
        let bytes: usize = heads.iter().map(|head| head.bytes as usize).sum();
        add(&self.counters.appends, 1);
        add(
            &self.counters.appended_records,
            append.rows.records() as usize,
        );
        add(&self.counters.appended_rows, heads.len());
        add(&self.counters.appended_bytes, bytes);
        if appended_at_us.is_none() {
            let mut tail = partition.tail.lock();
            let first_offset = tail.offsets().0;
            // An earlier attempt committed the rows, at a time that only the database knows. The
            // tail forgets its rows and moves its end, so consumers read these from the database.
            tail.update_offsets(first_offset, base_offset + append.rows.records());
            tail.answer_waiters(Instant::now());
        } else if let Some((bodies, charge)) = append.take_bodies()
            && let Some(chunk) = Chunk::new(&heads, bodies, charge)
        {
            let most_bytes = self.memory.tail_bytes();
            partition
                .tail
                .lock()
                .publish(chunk, most_bytes, Instant::now());
        }
        {
            let mut ledger = partition.ledger.lock();
            for run in &append.runs {
                let state = ProducerState {
                    last_sequence: run.last_sequence,
                    last_base: base_offset + run.relative,
                    last_first: run.first_sequence,
                };
                ledger.set(run.producer_id, state);
            }
        }
        append.acknowledge(base_offset);
    }

    fn refuse_all(&self, batches: Vec<Batch>, error: &Error) {
        add(&self.counters.refused_batches, batches.len());
        for batch in batches {
            batch.ack.refused(error);
        }
    }

    fn waited(&self, began: Instant) {
        add(
            &self.counters.append_wait_us,
            began.elapsed().as_micros() as usize,
        );
    }
}

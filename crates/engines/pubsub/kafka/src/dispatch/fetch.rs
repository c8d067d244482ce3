//! Reading.
//!
//! A consumer asks for many partitions at once and wants an answer as soon as one of them has
//! records. So the broker is asked for each of them, first without waiting, and then, where it has
//! answered that nothing is there, to wait for records. What still waits when the response is due
//! stays under way, and belongs to the next request for the same offset.
//!
//! The first answer says how far a partition goes, which every response must say: a consumer that
//! is told that a partition ends where it reads takes what it has for all of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dyno_pubsub::record::views;
use dyno_pubsub::wire::{Client, Fetch, Fetched};
use dyno_pubsub::{Code, Error, Result, StoredRow, TopicPartition};
use parking_lot::{Condvar, Mutex};

use super::{BrokerLink, Session};
use crate::connection::{Answer, Link, Pending};
use crate::error::ErrorCode;
use crate::records::BatchWriter;
use crate::shared::Shared;
use crate::wire::{
    FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse, Header,
};

/// The longest wait for records.
const MOST_WAIT: Duration = Duration::from_secs(30);
/// The most bytes of a response, except for the rows that always come: the bound that Kafka's own
/// servers have.
const MOST_BYTES: usize = 55 << 20;
/// The most bytes of one partition.
const MOST_PARTITION_BYTES: u32 = 8 << 20;
/// The bytes that all partitions of a connection may have under way, and what each may have in any
/// case: what comes for one partition waits here while another one is answered.
const MOST_UNDER_WAY_BYTES: usize = 16 << 20;
const LEAST_PARTITION_BYTES: u32 = 64 << 10;
/// How long the broker may take to say what is there, which it may have to read from the database.
const LONGEST_LOOK: Duration = Duration::from_secs(10);
/// How often a wait looks whether the connection still stands.
const LOOK: Duration = Duration::from_millis(250);
/// How much longer to wait once there is something, so that partitions whose records are there
/// already come with it.
const GATHER: Duration = Duration::from_micros(300);

/// What the broker was asked for this connection.
#[derive(Default)]
pub struct Fetches {
    under_way: HashMap<TopicPartition, UnderWay>,
    /// How far each partition goes, by the last answer.
    ends: HashMap<TopicPartition, Ends>,
    inbox: Arc<Inbox>,
    next_ticket: u64,
}

/// The first offset of a partition, and the offset that its next record gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    first_offset: i64,
    next_offset: i64,
}

/// A fetch that was sent to the broker.
struct UnderWay {
    offset: i64,
    /// Whether it waits for records at the end of the partition, so that the response need not wait
    /// for it.
    waits: bool,
    /// Tells its answer from those of earlier fetches of the partition.
    ticket: u64,
    answer: Option<Result<Fetched>>,
}

/// Answers of the broker that the writing thread has not looked at yet.
#[derive(Default)]
struct Inbox {
    arrived: Mutex<Vec<(TopicPartition, u64, Result<Fetched>)>>,
    arrives: Condvar,
}

/// A partition that a request asks for.
struct RequestedPartition {
    key: Result<TopicPartition>,
    ask: FetchPartition,
}

impl Session {
    pub(super) fn fetch(&mut self, header: Header, body: Bytes) -> Option<Pending> {
        let request = self.read::<FetchRequest>(&header, body)?;
        let shared = Arc::clone(&self.shared);
        let broker = Arc::clone(&self.broker);
        let fetches = Arc::clone(&self.fetches);
        Some(Box::new(move |link| {
            // No other thread uses it: fetches are answered one after the other.
            let mut fetches = fetches.lock();
            let response = fetches.answer(&shared, &broker, link, &request);
            Answer::Send(header.response::<FetchRequest>(&response))
        }))
    }
}

impl Fetches {
    fn answer(
        &mut self,
        shared: &Shared,
        broker: &BrokerLink,
        link: &Link,
        request: &FetchRequest,
    ) -> FetchResponse {
        let wait = Duration::from_millis(request.max_wait_ms.max(0).unsigned_abs().into());
        let until = Instant::now() + wait.min(MOST_WAIT);
        let requested: Vec<(String, Vec<RequestedPartition>)> = (request.topics.iter())
            .map(|topic| {
                let requested = topic.partitions.iter().map(|ask| RequestedPartition {
                    key: shared.partition(&topic.topic, ask.partition),
                    ask: ask.clone(),
                });
                (topic.topic.clone(), requested.collect())
            })
            .collect();
        self.forget_others(&requested);
        let failed = self
            .wait(shared, broker, link, &requested, request, until)
            .err();
        let mut bytes_left = (request.max_bytes.max(0).unsigned_abs() as usize).min(MOST_BYTES);
        let responses = requested.into_iter().map(|(topic, requested)| {
            let partitions = requested.into_iter().map(|requested| {
                let answered = self.partition(&requested, failed.as_ref(), &mut bytes_left);
                if answered.error_code != 0 {
                    shared.forget_topic(&topic);
                }
                answered
            });
            let partitions = partitions.collect();
            FetchTopicResponse { topic, partitions }
        });
        FetchResponse {
            responses: responses.collect(),
            ..FetchResponse::default()
        }
    }

    /// Forgets partitions that the client does not read any more, with what came for them.
    fn forget_others(&mut self, requested: &[(String, Vec<RequestedPartition>)]) {
        let all = requested.iter().flat_map(|(_, requested)| requested);
        let offsets: HashMap<TopicPartition, i64> = all
            .filter_map(|requested| {
                Some((
                    requested.key.as_ref().ok().copied()?,
                    requested.ask.fetch_offset,
                ))
            })
            .collect();
        // What is forgotten here still comes from the broker, but finds no ticket of its own and is
        // dropped. So a client that seeks cannot collect answers in memory.
        self.under_way
            .retain(|key, fetch| offsets.get(key) == Some(&fetch.offset));
        self.ends.retain(|key, _| offsets.contains_key(key));
    }

    /// Waits until there are as many bytes as the request wants, a failure, or no more time.
    fn wait(
        &mut self,
        shared: &Shared,
        broker: &BrokerLink,
        link: &Link,
        requested: &[(String, Vec<RequestedPartition>)],
        request: &FetchRequest,
        until: Instant,
    ) -> Result<()> {
        let least_bytes = request.min_bytes.max(1).unsigned_abs() as usize;
        let partitions: usize = requested.iter().map(|(_, requested)| requested.len()).sum();
        let share = (MOST_UNDER_WAY_BYTES / partitions.max(1)) as u32;
        let most_bytes = share.clamp(LEAST_PARTITION_BYTES, MOST_PARTITION_BYTES);
        let looks_until = Instant::now() + LONGEST_LOOK;
        loop {
            let client = broker.client(shared)?;
            let now = Instant::now();
            let left = until.saturating_duration_since(now);
            for (_, requested) in requested {
                for RequestedPartition { key, ask } in requested {
                    if let Ok(key) = key {
                        self.begin(&client, *key, ask, (left, most_bytes));
                    }
                }
            }
            self.take_arrived();
            // A broker that says nothing holds the response up only so long. Partitions that it has
            // answered for are given then, and the others are refused as late. So they are when the
            // server stops, because records that are yet to come are read elsewhere.
            let is_over = !link.is_open() || shared.is_stopping() || now >= looks_until.max(until);
            let looks = self.looks(requested);
            if is_over || !looks && (left.is_zero() || self.is_enough(requested, least_bytes)) {
                if !is_over && !left.is_zero() {
                    self.wait_for_arrival(GATHER);
                    self.take_arrived();
                }
                return Ok(());
            }
            self.wait_for_arrival(if looks { LOOK } else { left.min(LOOK) });
            self.take_arrived();
        }
    }

    /// Asks the broker for a partition, unless it was asked already.
    fn begin(
        &mut self,
        client: &Client,
        key: TopicPartition,
        ask: &FetchPartition,
        (left, most_bytes): (Duration, u32),
    ) {
        let has_something = |fetch: &UnderWay| match &fetch.answer {
            None | Some(Err(_)) => true,
            Some(Ok(fetched)) => has_rows(fetched) || left.is_zero(),
        };
        let before = self.under_way.get(&key);
        if before.is_some_and(has_something) {
            return;
        }
        // Waiting is for the end of the partition, which an answer without rows has shown, or the
        // answer whose rows end where the client is now.
        let ends = self.ends.get(&key);
        let is_at_end = ends.is_some_and(|ends| ends.next_offset == ask.fetch_offset);
        let waits = !left.is_zero() && (before.is_some() || is_at_end);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let most = ask.partition_max_bytes.max(1).unsigned_abs();
        let request = Fetch {
            topic_id: key.topic_id,
            partition: key.partition,
            offset: ask.fetch_offset,
            most_bytes: most.min(most_bytes),
            least_bytes: 1,
            wait_ms: if waits { left.as_millis() as u32 } else { 0 },
        };
        self.under_way.insert(
            key,
            UnderWay {
                offset: ask.fetch_offset,
                waits,
                ticket,
                answer: None,
            },
        );
        let inbox = Arc::clone(&self.inbox);
        // The broker's client calls this on the thread that reads all its answers, so nothing here
        // may wait for the writing thread.
        client.send(&request, move |fetched| {
            inbox.arrived.lock().push((key, ticket, fetched));
            inbox.arrives.notify_one();
        });
    }

    fn wait_for_arrival(&self, wait: Duration) {
        let mut arrived = self.inbox.arrived.lock();
        if arrived.is_empty() {
            self.inbox.arrives.wait_for(&mut arrived, wait);
        }
    }

    fn take_arrived(&mut self) {
        let arrived = std::mem::take(&mut *self.inbox.arrived.lock());
        for (key, ticket, answer) in arrived {
            if let Ok(fetched) = &answer {
                let ends = Ends {
                    first_offset: fetched.first_offset,
                    next_offset: fetched.next_offset,
                };
                self.ends.insert(key, ends);
            }
            // The client may have moved to another offset since this was asked. The answer is then
            // not what it waits for, though the ends that it told are the latest.
            if let Some(fetch) = self.under_way.get_mut(&key)
                && fetch.ticket == ticket
            {
                fetch.answer = Some(answer);
            }
        }
    }

    /// Whether the broker has yet to say what is there in any of the partitions.
    fn looks(&self, requested: &[(String, Vec<RequestedPartition>)]) -> bool {
        let all = requested.iter().flat_map(|(_, requested)| requested);
        let mut keys = all.filter_map(|requested| requested.key.as_ref().ok());
        keys.any(|key| {
            let fetch = self.under_way.get(key);
            fetch.is_some_and(|fetch| !fetch.waits && fetch.answer.is_none())
        })
    }

    fn is_enough(
        &self,
        requested: &[(String, Vec<RequestedPartition>)],
        least_bytes: usize,
    ) -> bool {
        let mut bytes = 0;
        for requested in requested.iter().flat_map(|(_, requested)| requested) {
            let Ok(key) = &requested.key else {
                return true;
            };
            match self
                .under_way
                .get(key)
                .and_then(|fetch| fetch.answer.as_ref())
            {
                Some(Ok(fetched)) => bytes += fetched.rows.0.iter().map(Bytes::len).sum::<usize>(),
                Some(Err(_)) => return true,
                None => {}
            }
        }
        bytes >= least_bytes
    }

    /// The response for one partition. `bytes_left` is what the whole response may still hold; its
    /// first records always come.
    fn partition(
        &mut self,
        requested: &RequestedPartition,
        failed: Option<&Error>,
        bytes_left: &mut usize,
    ) -> FetchPartitionResponse {
        let offset = requested.ask.fetch_offset;
        let ends = requested.key.as_ref().ok();
        let ends = ends.and_then(|key| self.ends.get(key).copied());
        let next_offset = ends.map_or(-1, |ends| ends.next_offset);
        let none = FetchPartitionResponse {
            partition_index: requested.ask.partition,
            high_watermark: next_offset,
            last_stable_offset: next_offset,
            log_start_offset: ends.map_or(-1, |ends| ends.first_offset),
            preferred_read_replica: -1,
            records: Some(Bytes::new()),
            ..FetchPartitionResponse::default()
        };
        let refused = |error: &Error| FetchPartitionResponse {
            error_code: ErrorCode::for_partition(error).0,
            high_watermark: -1,
            last_stable_offset: -1,
            ..none.clone()
        };
        let key = match &requested.key {
            Ok(key) => *key,
            Err(error) => return refused(error),
        };
        let fetch = self.under_way.get_mut(&key);
        let waits = fetch.as_ref().is_some_and(|fetch| fetch.waits);
        let answer = fetch.and_then(|fetch| fetch.answer.take());
        let fetched = match (answer, failed) {
            (None, None) if waits => return none,
            (None, failed) => {
                self.under_way.remove(&key);
                let late = Error::new(Code::TimedOut, "the broker did not say what is there");
                return refused(failed.unwrap_or(&late));
            }
            (Some(answer), _) if *bytes_left > 0 => {
                self.under_way.remove(&key);
                answer
            }
            (Some(answer), _) => {
                // There is no more room in this response: the rows wait for the next one.
                if let Some(fetch) = self.under_way.get_mut(&key) {
                    fetch.answer = Some(answer);
                }
                return none;
            }
        };
        let most = requested.ask.partition_max_bytes.max(1).unsigned_abs();
        let most_bytes = (most.min(MOST_PARTITION_BYTES) as usize).min(*bytes_left);
        let written =
            fetched.and_then(|fetched| Ok((written(offset, &fetched, most_bytes)?, fetched)));
        match written {
            Ok((records, fetched)) => {
                *bytes_left = bytes_left.saturating_sub(records.len());
                FetchPartitionResponse {
                    high_watermark: fetched.next_offset,
                    last_stable_offset: fetched.next_offset,
                    log_start_offset: fetched.first_offset,
                    records: Some(records),
                    ..none
                }
            }
            Err(error) => refused(&error),
        }
    }
}

fn has_rows(fetched: &Fetched) -> bool {
    fetched.rows.0.iter().any(|part| !part.is_empty())
}

/// A batch with the records of rows from `offset` on: those of one row, and of more until there are
/// `most_bytes`. The broker bounds rows as they are stored, and compressed ones may become any
/// number of times longer. The client asks again for those that are left out.
fn written(offset: i64, fetched: &Fetched, most_bytes: usize) -> Result<Bytes> {
    let stored_bytes = fetched.rows.0.iter().map(Bytes::len).sum::<usize>();
    let mut batch = BatchWriter::with_body_bytes(stored_bytes.min(most_bytes));
    for row in fetched.stored_rows() {
        if batch.bytes() >= most_bytes {
            break;
        }
        let row = row?;
        for (at, record) in (row.base_offset..).zip(views(&row_body(&row)?)) {
            let record = record.map_err(|error| damaged(&error))?;
            if at >= offset {
                batch.push(at, &record);
            }
        }
    }
    Ok(batch.finish())
}

/// The records of a row, one after the other.
pub(super) fn row_body(row: &StoredRow) -> Result<Bytes> {
    row.uncompressed().map_err(|error| damaged(&error))
}

/// Damage is that of the database here, and not of what the client sent.
pub(super) fn damaged(error: &Error) -> Error {
    Error::new(Code::DataDamaged, error.text())
}

#[cfg(test)]
mod tests;

//! Reading.
//!
//! A consumer asks for many partitions at once and wants an answer as soon as one of them has
//! records. The broker is asked for each of them and waits for records in each. What it has not
//! answered when the response is due stays under way, and belongs to the next request for the same
//! offset.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dyno_pubsub::record::{Codec, Records, decompress};
use dyno_pubsub::wire::{Client, Fetch, Fetched, Rows};
use dyno_pubsub::{Code, Error, Record, Result};
use parking_lot::{Condvar, Mutex};

use super::{BrokerLink, Session};
use crate::connection::{Answer, Link, Pending};
use crate::error::ErrorCode;
use crate::records::{Written, to_batches};
use crate::shared::Shared;
use crate::wire::{
    FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse, Header,
};

/// The longest wait for records.
const MOST_WAIT: Duration = Duration::from_secs(30);
/// The most bytes of one partition.
const MOST_PARTITION_BYTES: u32 = 8 << 20;
/// The bytes that all partitions of a connection may have under way, and what each may have in any
/// case: what comes for one partition waits here while another one is answered.
const MOST_UNDER_WAY_BYTES: usize = 16 << 20;
const LEAST_PARTITION_BYTES: u32 = 64 << 10;
/// How often a wait looks whether the connection still stands.
const LOOK: Duration = Duration::from_millis(250);
/// How much longer to wait once there is something, so that partitions whose records are there
/// already come with it.
const GATHER: Duration = Duration::from_micros(300);

/// A partition: the number of its topic, and its own.
type Place = (i32, i32);

/// What the broker was asked for this connection.
#[derive(Default)]
pub struct Fetches {
    under_way: HashMap<Place, UnderWay>,
    inbox: Arc<Inbox>,
    next_ticket: u64,
}

/// A fetch that was sent to the broker.
struct UnderWay {
    offset: i64,
    /// Tells its answer from those of earlier fetches of the partition.
    ticket: u64,
    answer: Option<Result<Fetched>>,
}

/// Answers of the broker that the writing thread has not looked at yet.
#[derive(Default)]
struct Inbox {
    arrived: Mutex<Vec<(Place, u64, Result<Fetched>)>>,
    arrives: Condvar,
}

/// A partition that a request asks for.
struct Wanted {
    place: Result<Place>,
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
        let wanted: Vec<(String, Vec<Wanted>)> = (request.topics.iter())
            .map(|topic| {
                let topic_id = shared.topic_id(&topic.topic);
                let wanted = topic.partitions.iter().map(|ask| Wanted {
                    place: topic_id.clone().map(|topic_id| (topic_id, ask.partition)),
                    ask: ask.clone(),
                });
                (topic.topic.clone(), wanted.collect())
            })
            .collect();
        self.forget_others(&wanted);
        let failed = self
            .wait(shared, broker, link, &wanted, request, until)
            .err();
        let mut bytes_left = request.max_bytes.max(0).unsigned_abs() as usize;
        let responses = wanted.into_iter().map(|(topic, wanted)| {
            let partitions = wanted.into_iter().map(|wanted| {
                let answered = self.partition(&wanted, failed.as_ref(), &mut bytes_left);
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
    fn forget_others(&mut self, wanted: &[(String, Vec<Wanted>)]) {
        let all = wanted.iter().flat_map(|(_, wanted)| wanted);
        let asked: HashMap<Place, i64> = all
            .filter_map(|wanted| {
                Some((
                    wanted.place.as_ref().ok().copied()?,
                    wanted.ask.fetch_offset,
                ))
            })
            .collect();
        self.under_way
            .retain(|place, fetch| asked.get(place) == Some(&fetch.offset));
    }

    /// Waits until there are as many bytes as the request wants, a failure, or no more time.
    fn wait(
        &mut self,
        shared: &Shared,
        broker: &BrokerLink,
        link: &Link,
        wanted: &[(String, Vec<Wanted>)],
        request: &FetchRequest,
        until: Instant,
    ) -> Result<()> {
        let least_bytes = request.min_bytes.max(1).unsigned_abs() as usize;
        let partitions: usize = wanted.iter().map(|(_, wanted)| wanted.len()).sum();
        let share = (MOST_UNDER_WAY_BYTES / partitions.max(1)) as u32;
        let most_bytes = share.clamp(LEAST_PARTITION_BYTES, MOST_PARTITION_BYTES);
        loop {
            let client = broker.client(shared)?;
            let now = Instant::now();
            let left = until.saturating_duration_since(now);
            for (_, wanted) in wanted {
                for Wanted { place, ask } in wanted {
                    if let Ok(place) = place {
                        self.begin(&client, *place, ask, (left, most_bytes));
                    }
                }
            }
            self.take_arrived();
            let is_late = now >= until || !link.is_open();
            if is_late || self.is_enough(wanted, least_bytes) {
                if !is_late {
                    self.wait_for_arrival(GATHER);
                    self.take_arrived();
                }
                return Ok(());
            }
            self.wait_for_arrival(left.min(LOOK));
            self.take_arrived();
        }
    }

    /// Asks the broker for a partition, unless it was asked already.
    fn begin(
        &mut self,
        client: &Client,
        place: Place,
        ask: &FetchPartition,
        (left, most_bytes): (Duration, u32),
    ) {
        let has_something = |fetch: &UnderWay| match &fetch.answer {
            None | Some(Err(_)) => true,
            Some(Ok(fetched)) => has_rows(fetched) || left.is_zero(),
        };
        if self.under_way.get(&place).is_some_and(has_something) {
            return;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let (topic_id, partition) = place;
        let most = ask.partition_max_bytes.max(1).unsigned_abs();
        let request = Fetch {
            topic_id,
            partition,
            offset: ask.fetch_offset,
            most_bytes: most.min(most_bytes),
            least_bytes: 1,
            wait_ms: left.as_millis() as u32,
        };
        self.under_way.insert(
            place,
            UnderWay {
                offset: ask.fetch_offset,
                ticket,
                answer: None,
            },
        );
        let inbox = Arc::clone(&self.inbox);
        client.send(&request, move |fetched| {
            inbox.arrived.lock().push((place, ticket, fetched));
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
        for (place, ticket, answer) in arrived {
            if let Some(fetch) = self.under_way.get_mut(&place)
                && fetch.ticket == ticket
            {
                fetch.answer = Some(answer);
            }
        }
    }

    fn is_enough(&self, wanted: &[(String, Vec<Wanted>)], least_bytes: usize) -> bool {
        let mut bytes = 0;
        for wanted in wanted.iter().flat_map(|(_, wanted)| wanted) {
            let Ok(place) = &wanted.place else {
                return true;
            };
            match self
                .under_way
                .get(place)
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
        wanted: &Wanted,
        failed: Option<&Error>,
        bytes_left: &mut usize,
    ) -> FetchPartitionResponse {
        let offset = wanted.ask.fetch_offset;
        let none = FetchPartitionResponse {
            partition_index: wanted.ask.partition,
            // The broker waits only at the end of the log, so that is where the client is.
            high_watermark: offset,
            last_stable_offset: offset,
            log_start_offset: -1,
            preferred_read_replica: -1,
            records: Some(Bytes::new()),
            ..FetchPartitionResponse::default()
        };
        let refused = |error: &Error| FetchPartitionResponse {
            error_code: ErrorCode::of_partition(error).0,
            high_watermark: -1,
            last_stable_offset: -1,
            ..none.clone()
        };
        let place = match &wanted.place {
            Ok(place) => *place,
            Err(error) => return refused(error),
        };
        let answer = self
            .under_way
            .get_mut(&place)
            .and_then(|fetch| fetch.answer.take());
        let fetched = match (answer, failed) {
            (None, None) => return none,
            (None, Some(error)) => {
                self.under_way.remove(&place);
                return refused(error);
            }
            (Some(answer), _) if *bytes_left > 0 => {
                self.under_way.remove(&place);
                answer
            }
            (Some(answer), _) => {
                // There is no more room in this response: the rows wait for the next one.
                if let Some(fetch) = self.under_way.get_mut(&place) {
                    fetch.answer = Some(answer);
                }
                return none;
            }
        };
        let written = fetched.and_then(|fetched| Ok((written(offset, &fetched)?, fetched)));
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

/// Batches with the records of rows from `offset` on.
fn written(offset: i64, fetched: &Fetched) -> Result<Bytes> {
    let mut written = Written::default();
    let mut records = Vec::new();
    let mut first = offset;
    for row in Rows::new(fetched.rows.bytes()) {
        let (row_offset, row_records) = row_records(row)?;
        for (at, record) in (row_offset..).zip(row_records) {
            if at < offset {
                continue;
            }
            if records.is_empty() {
                first = at;
            }
            records.push(record);
        }
    }
    to_batches(&mut written, first, &records);
    Ok(written.bytes.into())
}

/// The records of a row, with the offset of the first one.
pub(super) fn row_records(
    row: std::result::Result<(dyno_pubsub::wire::RowHead, Bytes), dyno_pubsub::wire::WireError>,
) -> Result<(i64, Vec<Record>)> {
    let (head, body) = row.map_err(|error| Error::new(Code::Damaged, error))?;
    if head
        .crc
        .is_some_and(|crc| crc != dyno_checksum::crc32c(&body))
    {
        let text = format_args!(
            "the checksum of the row at offset {} is wrong",
            head.base_offset
        );
        return Err(Error::new(Code::DataDamaged, text));
    }
    let raw = decompress(Codec::of_flags(i16::from(head.codec))?, body)?;
    let records = Records::new(raw).collect::<Result<Vec<_>>>()?;
    Ok((head.base_offset, records))
}

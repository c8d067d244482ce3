//! Appending.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use dyno_net::Charge;
use dyno_pubsub::record::Run;
use dyno_pubsub::wire::{Produce, Produced, Rest};
use dyno_pubsub::{Code, Result, TopicPartition};
use parking_lot::Mutex;

use super::Session;
use super::interrupted::Interrupted;
use crate::connection::{Answer, Link, Pending};
use crate::coordinator::{Awaited, reply};
use crate::error::ErrorCode;
use crate::records::{BatchHead, RecordsError, from_batch, read_head};
use crate::sequences::Writer;
use crate::wire::{
    Header, InitProducerIdRequest, InitProducerIdResponse, PartitionProduceData,
    PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse,
};

/// The longest body of an append: the broker's limit, less the head of a request.
const MOST_BODY_BYTES: usize = (12 << 20) - 1024;

/// The most bytes that the batches of one request may become. A few bytes of a compressed batch
/// stand for many, and all bodies of a request are held until they are committed.
const MOST_REQUEST_BYTES: usize = 2 * MOST_BODY_BYTES;

/// The producers of this connection for batches whose clients are not idempotent: for each
/// partition the run that the next batch begins.
#[derive(Default)]
pub struct OwnProducers(HashMap<TopicPartition, Run>);

impl OwnProducers {
    fn forget(&mut self, key: TopicPartition, producer_id: i64) {
        // Several batches of a failed producer come here one after the other. A new producer that
        // began between them has no gap, and stays.
        if self
            .0
            .get(&key)
            .is_some_and(|next| next.producer_id == producer_id)
        {
            self.0.remove(&key);
        }
    }
}

/// The memory that the batches of one request may take, and what they took.
struct RequestMemory {
    bytes_left: usize,
    charges: Vec<Charge>,
}

/// The append of one partition that is under way, or was refused.
struct PartitionAppend {
    index: i32,
    /// The client's producer, or -1 if it has none or the batch could not be read.
    producer_id: i64,
    outcome: Outcome,
}

enum Outcome {
    Refused(ErrorCode, String),
    /// Kept aside until its transaction is committed; it has no offset before that.
    Staged,
    Sent(Awaited<Result<Produced>>),
}

impl Session {
    pub(super) fn produce(&mut self, header: Header, body: Bytes) -> Option<Pending> {
        let request = self.read::<ProduceRequest>(&header, body)?;
        let refusal = match request.acks {
            -1..=1 => None,
            _ => Some((ErrorCode::INVALID_REQUIRED_ACKS, "acks are 0, 1 or all")),
        };
        let acks = request.acks;
        let transaction = request.transactional_id.as_deref();
        let mut memory = RequestMemory {
            bytes_left: MOST_REQUEST_BYTES,
            charges: Vec::new(),
        };
        // Every partition is under way before the first is waited for, so that the broker can put
        // all of them into one commit.
        let mut topics = Vec::with_capacity(request.topic_data.len());
        for topic in request.topic_data {
            let appends = topic.partition_data.into_iter().map(|data| {
                let index = data.index;
                let (producer_id, outcome) = match refusal {
                    Some((error, text)) => (-1, Outcome::Refused(error, text.to_owned())),
                    None => self.append(transaction, &topic.name, data, &mut memory),
                };
                PartitionAppend {
                    index,
                    producer_id,
                    outcome,
                }
            });
            topics.push((topic.name.clone(), appends.collect::<Vec<_>>()));
        }
        let shared = Arc::clone(&self.shared);
        let interrupted = Arc::clone(&self.interrupted);
        Some(Box::new(move |link| {
            // The bodies are in memory until they are committed, which is until all answers are
            // there.
            let _charges = memory.charges;
            let mut failed = false;
            let responses = topics.into_iter().map(|(name, appends)| {
                let partitions = appends.into_iter();
                let partitions = partitions.map(|append| append.answer(link, &name, &interrupted));
                let partition_responses: Vec<_> = partitions.collect();
                if partition_responses.iter().any(|one| one.error_code != 0) {
                    shared.forget_topic(&name);
                    failed = true;
                }
                TopicProduceResponse {
                    name,
                    partition_responses,
                }
            });
            let response = ProduceResponse {
                responses: responses.collect(),
                throttle_time_ms: 0,
            };
            match acks {
                // A client that wants no response learns of a failure by the end of the connection.
                0 if failed => Answer::Close,
                0 => Answer::Nothing,
                _ => Answer::Send(header.response::<ProduceRequest>(&response)),
            }
        }))
    }

    /// Begins the append of a batch, and returns its producer with it.
    fn append(
        &mut self,
        transaction: Option<&str>,
        topic: &str,
        data: PartitionProduceData,
        memory: &mut RequestMemory,
    ) -> (i64, Outcome) {
        let most_bytes = memory.bytes_left.min(MOST_BODY_BYTES);
        match read_batch(data.records, most_bytes) {
            Ok((head, body)) => {
                let at = (topic, data.index);
                let outcome = self.append_batch(transaction, at, &head, body, memory);
                (head.producer_id, outcome)
            }
            Err(error) => (-1, Outcome::Refused(error.code(), error.to_string())),
        }
    }

    fn append_batch(
        &mut self,
        transaction: Option<&str>,
        (topic, partition): (&str, i32),
        head: &BatchHead,
        body: Vec<u8>,
        memory: &mut RequestMemory,
    ) -> Outcome {
        // Charged at once, although there may be no memory: waiting for some while the request
        // itself is charged could wait for ever. The next request waits instead.
        memory.charges.push(self.shared.frames.charge(body.len()));
        memory.bytes_left -= body.len();
        // A batch that was meant for a transaction must not be read before its end.
        if head.is_transactional != transaction.is_some() {
            let text = "the batch and its request disagree on whether there is a transaction";
            return Outcome::Refused(ErrorCode::INVALID_TXN_STATE, text.to_owned());
        }
        if let Some(transactional_id) = transaction {
            return match self.stage(transactional_id, (topic, partition), head, &body) {
                Ok(()) => Outcome::Staged,
                Err(error) => {
                    Outcome::Refused(error, "the batch is not part of the transaction".to_owned())
                }
            };
        }
        match self.send(topic, partition, head, body) {
            Ok(awaited) => Outcome::Sent(awaited),
            Err(error) => {
                Outcome::Refused(ErrorCode::for_partition(&error), error.text().to_owned())
            }
        }
    }

    fn send(
        &mut self,
        topic: &str,
        partition: i32,
        head: &BatchHead,
        body: Vec<u8>,
    ) -> Result<Awaited<Result<Produced>>> {
        let key = self.shared.partition(topic, partition)?;
        let is_own = head.producer_id < 0;
        let run = if is_own {
            self.own_run(key, head.count)?
        } else {
            let writer = Writer {
                key,
                producer_id: head.producer_id,
            };
            let numbers = (head.base_sequence, head.count);
            let (store, epoch) = (&self.shared.store, head.producer_epoch);
            let sequences = &self.shared.sequences;
            Run {
                producer_id: head.producer_id,
                first_sequence: sequences.first_of_batch(store, writer, epoch, numbers)?,
            }
        };
        let request = Produce {
            topic_id: key.topic_id,
            partition,
            producer_id: run.producer_id,
            first_sequence: run.first_sequence,
            count: head.count,
            crc: dyno_checksum::crc32c(&body),
            // The broker compresses by the topic's setting when it makes rows.
            codec: 0,
            body: Rest::one(Bytes::from(body)),
        };
        let (reply, awaited) = reply();
        let own: Arc<Mutex<OwnProducers>> = Arc::clone(&self.own_producers);
        self.broker
            .client(&self.shared)?
            .send(&request, move |done| {
                if is_own && done.is_err() {
                    // What follows would leave a gap behind the records that are missing.
                    own.lock().forget(key, run.producer_id);
                }
                reply.send(done);
            });
        Ok(awaited)
    }

    /// The run of a batch whose client is not idempotent, by a producer of this connection.
    fn own_run(&mut self, key: TopicPartition, count: u32) -> Result<Run> {
        let mut own = self.own_producers.lock();
        let run = match own.0.get(&key) {
            Some(next) => *next,
            None => Run {
                producer_id: self.shared.store.new_producer()?,
                first_sequence: 0,
            },
        };
        // Counted on before the batch is committed, because the next one follows without waiting.
        // If this one fails, those behind it are refused as a gap, and `forget` has the next begin
        // with a new producer.
        let next = Run {
            first_sequence: run.first_sequence + i64::from(count),
            ..run
        };
        own.0.insert(key, next);
        Ok(run)
    }

    pub(super) fn init_producer_id(
        &mut self,
        header: &Header,
        request: InitProducerIdRequest,
    ) -> InitProducerIdResponse {
        let refused = |error: ErrorCode| InitProducerIdResponse {
            error_code: error.0,
            producer_id: -1,
            producer_epoch: -1,
            ..InitProducerIdResponse::default()
        };
        if let Some(transactional_id) = &request.transactional_id {
            return match self.init_transactional(header, &request, transactional_id) {
                Ok(given) => InitProducerIdResponse {
                    producer_id: given.producer_id,
                    producer_epoch: given.epoch,
                    ..InitProducerIdResponse::default()
                },
                Err(error) => refused(error),
            };
        }
        match self.shared.store.new_producer() {
            Ok(producer_id) => InitProducerIdResponse {
                producer_id,
                ..InitProducerIdResponse::default()
            },
            Err(error) => refused(ErrorCode::for_topic(&error)),
        }
    }
}

/// The head of a batch, and its records as a body of the log.
fn read_batch(
    records: Option<Bytes>,
    most_bytes: usize,
) -> std::result::Result<(BatchHead, Vec<u8>), RecordsError> {
    let (head, packed) = read_head(records.unwrap_or_default())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.unwrap_or_default().as_millis() as i64;
    let body = from_batch(&head, packed, now_ms, most_bytes)?;
    Ok((head, body))
}

impl PartitionAppend {
    /// Waits for the commit, and answers with an error that says what the client is to do.
    fn answer(
        self,
        link: &Link,
        topic: &str,
        interrupted: &Mutex<Interrupted>,
    ) -> PartitionProduceResponse {
        let producer_id = self.producer_id;
        let mut response = self.finish(link);
        if producer_id >= 0 {
            let at = (topic, response.index);
            let error = ErrorCode(response.error_code);
            let error = interrupted.lock().answer(at, producer_id, error);
            response.error_code = error.0;
        }
        response
    }

    /// Waits for the commit.
    fn finish(self, link: &Link) -> PartitionProduceResponse {
        let base = PartitionProduceResponse {
            index: self.index,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            ..PartitionProduceResponse::default()
        };
        let refused = |error: ErrorCode, text: String| PartitionProduceResponse {
            error_code: error.0,
            error_message: Some(text),
            ..base.clone()
        };
        match self.outcome {
            Outcome::Refused(error, text) => refused(error, text),
            Outcome::Staged => base,
            Outcome::Sent(awaited) => match awaited.wait(|| link.is_open()) {
                Some(Ok(produced)) if produced.base_offset >= 0 => PartitionProduceResponse {
                    base_offset: produced.base_offset,
                    ..base
                },
                // The records are in the log, so far back that their offset is not known any more.
                Some(Ok(_)) => {
                    let text = "the records are in the log already".to_owned();
                    refused(ErrorCode::DUPLICATE_SEQUENCE_NUMBER, text)
                }
                // The client knows nothing of our sequences. A gap in them is behind a batch that
                // failed before, and the next attempt has new ones.
                Some(Err(error)) if self.producer_id < 0 && error.kind() == Code::SequenceGap => {
                    refused(ErrorCode::NOT_LEADER_OR_FOLLOWER, error.text().to_owned())
                }
                Some(Err(error)) => {
                    refused(ErrorCode::for_partition(&error), error.text().to_owned())
                }
                None => refused(
                    ErrorCode::REQUEST_TIMED_OUT,
                    "the client has gone".to_owned(),
                ),
            },
        }
    }
}

impl RecordsError {
    fn code(&self) -> ErrorCode {
        match self {
            RecordsError::Damaged(_) => ErrorCode::CORRUPT_MESSAGE,
            RecordsError::Refused(_) => ErrorCode::INVALID_RECORD,
            RecordsError::TooLong { .. } => ErrorCode::MESSAGE_TOO_LARGE,
            RecordsError::Version(_) => ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT,
        }
    }
}

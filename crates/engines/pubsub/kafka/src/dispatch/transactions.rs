//! Transactions of producers.
//!
//! What a producer sends within a transaction is kept aside in the database, and appended to the
//! log when the transaction is committed. Every reader reads only what is committed, whatever
//! isolation level it asks for, and nothing of a transaction that was aborted is ever in the log.
//! The price is that a record's offset is not known before the commit, so acknowledgements have
//! none.

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_pubsub::record::{Batch, Run};
use dyno_pubsub::{TopicPartition, TransactionalProducer};

use super::Session;
use super::groups::identity;
use super::offsets::every_partition;
use crate::error::ErrorCode;
use crate::records::BatchHead;
use crate::sequences::Writer;
use crate::transactions::GivenProducer;
use crate::wire::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnTopicResult,
    EndTxnRequest, EndTxnResponse, Header, InitProducerIdRequest, OffsetCommitPartition,
    OffsetCommitTopic, TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};

/// The longest transactional id, as the table has it.
const MOST_ID_BYTES: usize = 249;
/// The longest time that a transaction may take, which is Kafka's default.
const MOST_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// The versions from which on clients tell a producer that was replaced from a wrong epoch.
const INIT_KNOWS_FENCED_SINCE: i16 = 4;
const KNOWS_FENCED_SINCE: i16 = 2;
const OFFSETS_KNOW_FENCED_SINCE: i16 = 3;
/// From this version of TxnOffsetCommit on the request names the member of the group.
const NAMES_MEMBER_SINCE: i16 = 3;
/// A request about several partitions, one of which is refused, does nothing about the others.
const OPERATION_NOT_ATTEMPTED: ErrorCode = ErrorCode(55);

impl Session {
    /// The id and epoch of a producer with transactions.
    pub(super) fn init_transactional(
        &self,
        header: &Header,
        request: &InitProducerIdRequest,
        transactional_id: &str,
    ) -> Result<GivenProducer, ErrorCode> {
        check_id(transactional_id)?;
        let timeout_ms = u64::try_from(request.transaction_timeout_ms).unwrap_or(0);
        let timeout = Duration::from_millis(timeout_ms);
        if timeout.is_zero() || timeout > MOST_TIMEOUT {
            return Err(ErrorCode::INVALID_TRANSACTION_TIMEOUT);
        }
        // Before version 3 a request has neither, and the fields are 0, which could be an id.
        let had = (header.version >= 3 && request.producer_id >= 0).then_some(GivenProducer {
            producer_id: request.producer_id,
            epoch: request.producer_epoch,
        });
        let given = self
            .shared
            .store
            .init_producer(transactional_id, timeout, had);
        let given = given.map_err(|error| ErrorCode::for_group(&error))?;
        given.map_err(|error| fenced(error, header, INIT_KNOWS_FENCED_SINCE))
    }

    pub(super) fn add_partitions(
        &mut self,
        header: &Header,
        request: AddPartitionsToTxnRequest,
    ) -> AddPartitionsToTxnResponse {
        let is_known = |name: &str| self.shared.topic_id(name).is_ok();
        let unknown: Vec<bool> = (request.topics.iter())
            .map(|topic| !is_known(&topic.name))
            .collect();
        let begun = if unknown.contains(&true) {
            Err(OPERATION_NOT_ATTEMPTED)
        } else {
            self.begin_transaction(
                header,
                TransactionalProducer {
                    transactional_id: &request.transactional_id,
                    producer_id: request.producer_id,
                    epoch: request.producer_epoch,
                },
            )
        };
        let results = request
            .topics
            .into_iter()
            .zip(unknown)
            .map(|(topic, unknown)| {
                let error = if unknown {
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                } else {
                    begun.err().unwrap_or(ErrorCode::NONE)
                };
                let result = |partition_index| AddPartitionsToTxnPartitionResult {
                    partition_index,
                    partition_error_code: error.0,
                };
                AddPartitionsToTxnTopicResult {
                    name: topic.name,
                    results_by_partition: topic.partitions.into_iter().map(result).collect(),
                }
            });
        AddPartitionsToTxnResponse {
            throttle_time_ms: 0,
            results: results.collect(),
        }
    }

    pub(super) fn add_offsets(
        &mut self,
        header: &Header,
        request: AddOffsetsToTxnRequest,
    ) -> AddOffsetsToTxnResponse {
        let begun = self.begin_transaction(
            header,
            TransactionalProducer {
                transactional_id: &request.transactional_id,
                producer_id: request.producer_id,
                epoch: request.producer_epoch,
            },
        );
        AddOffsetsToTxnResponse {
            throttle_time_ms: 0,
            error_code: begun.err().unwrap_or(ErrorCode::NONE).0,
        }
    }

    fn begin_transaction(
        &self,
        header: &Header,
        producer: TransactionalProducer<'_>,
    ) -> Result<(), ErrorCode> {
        check_id(producer.transactional_id)?;
        let begun = self.shared.store.begin_transaction(producer);
        let begun = begun.map_err(|error| ErrorCode::for_group(&error))?;
        begun.map_err(|error| fenced(error, header, KNOWS_FENCED_SINCE))
    }

    /// Keeps a batch aside. It is done before the next request is read, so that batches of one
    /// partition are kept in the order in which they came.
    pub(super) fn stage(
        &self,
        transactional_id: &str,
        (topic, partition): (&str, i32),
        head: &BatchHead,
        body: &[u8],
    ) -> Result<(), ErrorCode> {
        let of_partition = |error| ErrorCode::for_partition(&error);
        let topic = self.shared.topic(topic).map_err(of_partition)?;
        let key = TopicPartition {
            topic_id: topic.topic_id,
            partition,
        };
        let writer = Writer {
            key,
            producer_id: head.producer_id,
        };
        let numbers = (head.base_sequence, head.count);
        let (store, sequences) = (&self.shared.store, &self.shared.sequences);
        let first_sequence = sequences.first_of_batch(store, writer, head.producer_epoch, numbers);
        let run = Run {
            producer_id: head.producer_id,
            first_sequence: first_sequence.map_err(of_partition)?,
        };
        let mut batch = Batch::new();
        let pushed = batch.push_compressing(run, topic.compression, body);
        pushed.map_err(of_partition)?;
        let producer = TransactionalProducer {
            transactional_id,
            producer_id: head.producer_id,
            epoch: head.producer_epoch,
        };
        store
            .stage(producer, key, &mut batch)
            .map_err(of_partition)?
    }

    pub(super) fn end_transaction(
        &mut self,
        header: &Header,
        request: EndTxnRequest,
    ) -> EndTxnResponse {
        let producer = TransactionalProducer {
            transactional_id: &request.transactional_id,
            producer_id: request.producer_id,
            epoch: request.producer_epoch,
        };
        let ended = check_id(&request.transactional_id).and_then(|()| {
            let ended = self
                .shared
                .store
                .end_transaction(producer, request.committed);
            ended.map_err(|error| ErrorCode::for_group(&error))?
        });
        EndTxnResponse {
            throttle_time_ms: 0,
            error_code: match ended {
                Ok(()) => ErrorCode::NONE.0,
                Err(error) => fenced(error, header, KNOWS_FENCED_SINCE).0,
            },
        }
    }

    pub(super) fn stage_offsets(
        &mut self,
        header: &Header,
        request: TxnOffsetCommitRequest,
    ) -> TxnOffsetCommitResponse {
        let group = &request.group_id;
        let topics: Vec<OffsetCommitTopic> = request.topics.into_iter().map(plain).collect();
        let admitted = self.owned(group).and_then(|()| {
            // A client that names no member is admitted: only the name would tell whether its
            // partitions are another member's by now.
            if header.version < NAMES_MEMBER_SINCE || request.generation_id < 0 {
                return Ok(());
            }
            let member = identity(&request.member_id, &request.group_instance_id);
            let coordinator = &self.shared.coordinator;
            coordinator.may_commit(group, member, request.generation_id)
        });
        let (commits, mut errors) = match admitted {
            Ok(()) => self.commits(&topics),
            Err(error) => (BTreeMap::new(), every_partition(&topics, error)),
        };
        if !commits.is_empty() {
            let producer = TransactionalProducer {
                transactional_id: &request.transactional_id,
                producer_id: request.producer_id,
                epoch: request.producer_epoch,
            };
            let kept = self.shared.store.stage_offsets(producer, group, &commits);
            let kept = kept.map_err(|error| ErrorCode::for_group(&error));
            if let Err(error) = kept.flatten() {
                let error = fenced(error, header, OFFSETS_KNOW_FENCED_SINCE);
                errors = every_partition(&topics, error);
            }
        }
        let topics = topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| {
                let key = (topic.name.clone(), partition.partition_index);
                TxnOffsetCommitResponsePartition {
                    partition_index: partition.partition_index,
                    error_code: errors.get(&key).copied().unwrap_or(ErrorCode::NONE).0,
                }
            });
            TxnOffsetCommitResponseTopic {
                partitions: partitions.collect(),
                name: topic.name,
            }
        });
        TxnOffsetCommitResponse {
            throttle_time_ms: 0,
            topics: topics.collect(),
        }
    }
}

/// The offsets of one topic as a commit outside of a transaction has them.
fn plain(topic: TxnOffsetCommitRequestTopic) -> OffsetCommitTopic {
    let partitions = topic.partitions.into_iter();
    OffsetCommitTopic {
        name: topic.name,
        partitions: partitions
            .map(|partition| OffsetCommitPartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                committed_metadata: partition.committed_metadata,
            })
            .collect(),
    }
}

fn check_id(transactional_id: &str) -> Result<(), ErrorCode> {
    let is_name =
        (1..=MOST_ID_BYTES).contains(&transactional_id.len()) && !transactional_id.contains('\0');
    if is_name {
        Ok(())
    } else {
        Err(ErrorCode::INVALID_REQUEST)
    }
}

/// What a client of this version is told of a producer that was replaced.
fn fenced(error: ErrorCode, header: &Header, known_since: i16) -> ErrorCode {
    match error {
        ErrorCode::PRODUCER_FENCED if header.version < known_since => {
            ErrorCode::INVALID_PRODUCER_EPOCH
        }
        other => other,
    }
}

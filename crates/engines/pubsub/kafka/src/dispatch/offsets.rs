//! Finding offsets, and keeping those of groups.

use std::collections::{BTreeMap, BTreeSet};

use dyno_pubsub::record::views;
use dyno_pubsub::wire::Fetch;
use dyno_pubsub::{Error, Start, TopicPartition};

use super::Session;
use super::fetch::{damaged, row_body};
use super::groups::identity;
use crate::error::ErrorCode;
use crate::store::Committed;
use crate::wire::{
    Header, ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest,
    ListOffsetsResponse, ListOffsetsTopicResponse, OffsetCommitPartitionResponse,
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic, OffsetCommitTopicResponse,
    OffsetFetchPartitionResponse, OffsetFetchRequest, OffsetFetchResponse,
    OffsetFetchTopicResponse,
};

/// The moments that stand for the end and the beginning of a partition.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
/// The longest text that a client may keep with an offset.
const MOST_METADATA_BYTES: usize = 4096;
const MICROS: i64 = 1_000;

/// How far a group has read, and the partitions of which that is about to change.
type StoredOffsets = (BTreeMap<(String, i32), Committed>, BTreeSet<(String, i32)>);

impl Session {
    pub(super) fn list_offsets(
        &mut self,
        _: &Header,
        request: ListOffsetsRequest,
    ) -> ListOffsetsResponse {
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|ask| {
                let found = self.find_offset(&topic.name, ask);
                if found.is_err() {
                    self.shared.forget_topic(&topic.name);
                }
                let base = ListOffsetsPartitionResponse {
                    partition_index: ask.partition_index,
                    timestamp: -1,
                    offset: -1,
                    leader_epoch: -1,
                    ..ListOffsetsPartitionResponse::default()
                };
                match found {
                    Ok((timestamp, offset)) => ListOffsetsPartitionResponse {
                        timestamp,
                        offset,
                        ..base
                    },
                    Err(error) => ListOffsetsPartitionResponse {
                        error_code: ErrorCode::for_partition(&error).0,
                        ..base
                    },
                }
            });
            ListOffsetsTopicResponse {
                partitions: partitions.collect(),
                name: topic.name,
            }
        });
        ListOffsetsResponse {
            throttle_time_ms: 0,
            topics: topics.collect(),
        }
    }

    /// The time in milliseconds and the offset of the first record from a moment on; both -1 if
    /// there is none.
    fn find_offset(
        &self,
        topic: &str,
        ask: &ListOffsetsPartition,
    ) -> dyno_pubsub::Result<(i64, i64)> {
        let key = self.shared.partition(topic, ask.partition_index)?;
        let start = match ask.timestamp {
            LATEST => Start::Latest,
            EARLIEST => Start::Earliest,
            time_ms => {
                let time_us = time_ms.max(0).saturating_mul(MICROS);
                return self.find_record(key, time_us);
            }
        };
        let store = &self.shared.store;
        Ok((-1, store.offset_of(topic, ask.partition_index, start)?))
    }

    fn find_record(&self, key: TopicPartition, time_us: i64) -> dyno_pubsub::Result<(i64, i64)> {
        let store = &self.shared.store;
        let mut from = 0;
        while let Some(offset) = store.row_from_time(key, time_us, from)? {
            let fetched = self.broker.client(&self.shared)?.ask(&Fetch {
                topic_id: key.topic_id,
                partition: key.partition,
                offset,
                most_bytes: 1,
                least_bytes: 0,
                wait_ms: 0,
            })?;
            // An answer without rows ends the search: retention has removed the row between the two
            // questions.
            from = i64::MAX;
            for row in fetched.stored_rows() {
                let row = row?;
                from = row.base_offset + i64::from(row.count);
                for (at, record) in (row.base_offset..).zip(views(&row_body(&row)?)) {
                    let record = record.map_err(|error| damaged(&error))?;
                    if at >= offset && record.time_us >= time_us {
                        return Ok((record.time_us.div_euclid(MICROS), at));
                    }
                }
            }
            // A row is found by the time of its latest record. That one may have been deleted and
            // the rest of the row be earlier, so the search goes on behind it.
        }
        Ok((-1, -1))
    }

    pub(super) fn offset_commit(
        &mut self,
        _: &Header,
        request: OffsetCommitRequest,
    ) -> OffsetCommitResponse {
        let group = &request.group_id;
        let member = identity(&request.member_id, &request.group_instance_id);
        let coordinator = &self.shared.coordinator;
        // The member and its generation are judged in memory. That this server still has the group
        // is judged by the database, in the transaction that stores: between the two the lease may
        // lapse.
        let admitted = self
            .owned(group)
            .and_then(|()| coordinator.may_commit(group, member, request.generation_id));
        let (commits, errors) = match admitted {
            Ok(()) => self.commits(&request.topics),
            Err(error) => (BTreeMap::new(), every_partition(&request.topics, error)),
        };
        let mut errors = errors;
        if !commits.is_empty() {
            let stored = self.shared.store.commit(group, self.shared.node, &commits);
            if let Err(error) = stored {
                let code = ErrorCode::for_group(&error);
                // Its members are told to look for the other server, instead of staying here with
                // offsets that cannot be stored.
                if code == ErrorCode::NOT_COORDINATOR {
                    coordinator.forget(group);
                }
                errors = every_partition(&request.topics, code);
            }
        }
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| {
                let key = (topic.name.clone(), partition.partition_index);
                OffsetCommitPartitionResponse {
                    partition_index: partition.partition_index,
                    error_code: errors.get(&key).copied().unwrap_or(ErrorCode::NONE).0,
                }
            });
            OffsetCommitTopicResponse {
                partitions: partitions.collect(),
                name: topic.name,
            }
        });
        OffsetCommitResponse {
            throttle_time_ms: 0,
            topics: topics.collect(),
        }
    }

    /// What can be stored, and why the rest cannot.
    pub(super) fn commits(
        &self,
        topics: &[OffsetCommitTopic],
    ) -> (
        BTreeMap<TopicPartition, Committed>,
        BTreeMap<(String, i32), ErrorCode>,
    ) {
        let mut commits = BTreeMap::new();
        let mut errors = BTreeMap::new();
        for topic in topics {
            let topic_id = self.shared.topic_id(&topic.name);
            for partition in &topic.partitions {
                let metadata = partition.committed_metadata.clone().unwrap_or_default();
                let index = partition.partition_index;
                let checked = match &topic_id {
                    Err(error) => Err(ErrorCode::for_group(error)),
                    Ok(_) if metadata.len() > MOST_METADATA_BYTES => {
                        Err(ErrorCode::OFFSET_METADATA_TOO_LARGE)
                    }
                    Ok(_) if partition.committed_offset < 0 => Err(ErrorCode::INVALID_REQUEST),
                    Ok(topic_id) => Ok(*topic_id),
                };
                match checked {
                    Ok(topic_id) => {
                        let key = TopicPartition {
                            topic_id,
                            partition: index,
                        };
                        let commit = Committed {
                            offset: partition.committed_offset,
                            metadata,
                        };
                        // The last one of a partition counts, as if they had come one by one.
                        commits.insert(key, commit);
                    }
                    Err(error) => {
                        errors.insert((topic.name.clone(), index), error);
                    }
                }
            }
        }
        (commits, errors)
    }

    /// The offsets of a group, and, if they must be stable, the partitions of which a transaction
    /// under way will store others.
    fn stored_offsets(&self, group: &str, stable: bool) -> Result<StoredOffsets, ErrorCode> {
        let of_group = |error: Error| ErrorCode::for_group(&error);
        let store = &self.shared.store;
        // A member that is given a partition must not begin before where the last one will have
        // ended, if that one's transaction is committed. This is asked first: what a transaction
        // stores that ends between the two questions is then found by the second one. The other way
        // round it would be found by neither.
        let pending = if stable {
            store.staged_offsets(group).map_err(of_group)?
        } else {
            BTreeSet::new()
        };
        Ok((store.committed(group).map_err(of_group)?, pending))
    }

    pub(super) fn offset_fetch(
        &mut self,
        _: &Header,
        request: OffsetFetchRequest,
    ) -> OffsetFetchResponse {
        let found = self
            .owned(&request.group_id)
            .and_then(|()| self.stored_offsets(&request.group_id, request.require_stable));
        let ((committed, pending), error) = match found {
            Ok(found) => (found, ErrorCode::NONE),
            Err(error) => (Default::default(), error),
        };
        let wanted: Vec<(String, Vec<i32>)> = match request.topics {
            Some(topics) => topics
                .into_iter()
                .map(|t| (t.name, t.partition_indexes))
                .collect(),
            None => {
                let mut all: BTreeMap<String, Vec<i32>> = BTreeMap::new();
                for (topic, partition) in committed.keys() {
                    all.entry(topic.clone()).or_default().push(*partition);
                }
                all.into_iter().collect()
            }
        };
        let topics = wanted.into_iter().map(|(name, partitions)| {
            let partitions = partitions.into_iter().map(|partition| {
                let key = (name.clone(), partition);
                let known = committed.get(&key);
                let is_pending = pending.contains(&key);
                OffsetFetchPartitionResponse {
                    partition_index: partition,
                    committed_offset: known.map_or(-1, |known| known.offset),
                    committed_leader_epoch: -1,
                    metadata: Some(known.map_or_else(String::new, |known| known.metadata.clone())),
                    error_code: if is_pending {
                        ErrorCode::UNSTABLE_OFFSET_COMMIT.0
                    } else {
                        error.0
                    },
                }
            });
            OffsetFetchTopicResponse {
                partitions: partitions.collect(),
                name,
            }
        });
        OffsetFetchResponse {
            throttle_time_ms: 0,
            topics: topics.collect(),
            error_code: error.0,
        }
    }
}

pub(super) fn every_partition(
    topics: &[OffsetCommitTopic],
    error: ErrorCode,
) -> BTreeMap<(String, i32), ErrorCode> {
    let all = topics.iter().flat_map(|topic| {
        let partitions = topic.partitions.iter();
        partitions.map(|partition| ((topic.name.clone(), partition.partition_index), error))
    });
    all.collect()
}

//! Creating, changing and deleting topics.

use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::{Error, TopicChanges, TopicOptions};

use super::Session;
use super::configs::{
    PARTITIONER, PARTITIONER_DEFAULT, SET, UNLIMITED, change, created_configs, partitioner,
};
use crate::error::ErrorCode;
use crate::wire::{
    AlterableConfig, CreatableTopic, CreatePartitionsRequest, CreatePartitionsResponse,
    CreatePartitionsResult, CreatePartitionsTopic, CreateTopicsRequest, CreateTopicsResponse,
    CreatedTopic, DeleteTopicsRequest, DeleteTopicsResponse, DeletedTopic, Header,
};

/// The longest wait for brokers to take the partitions of a new topic, and the pause between two
/// looks.
pub(super) const LEADERS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Why something is refused.
pub(super) type Refusal = (ErrorCode, String);

impl Session {
    pub(super) fn create_topics(
        &mut self,
        _: &Header,
        request: CreateTopicsRequest,
    ) -> CreateTopicsResponse {
        let mut created_names = Vec::new();
        let topics = request.topics.into_iter().map(|topic| {
            let created = options(&topic).and_then(|options| {
                if !request.validate_only {
                    let created = self.shared.store.create_topic(&topic.name, &options);
                    created.map_err(refusal)?;
                    created_names.push(topic.name.clone());
                }
                Ok(options)
            });
            let base = CreatedTopic {
                name: topic.name,
                num_partitions: -1,
                replication_factor: -1,
                ..CreatedTopic::default()
            };
            match created {
                Ok(options) => CreatedTopic {
                    num_partitions: options.partitions.cast_signed(),
                    replication_factor: 1,
                    // Kafka's Java client reads them without looking whether they are null.
                    configs: Some(created_configs(&options)),
                    ..base
                },
                Err((error, text)) => CreatedTopic {
                    error_code: error.0,
                    error_message: Some(text),
                    ..base
                },
            }
        });
        let topics = topics.collect();
        let timeout_ms = u64::from(request.timeout_ms.max(0).unsigned_abs());
        self.await_leaders(&created_names, Duration::from_millis(timeout_ms));
        CreateTopicsResponse {
            throttle_time_ms: 0,
            topics,
        }
    }

    /// Waits until brokers have taken the partitions of new topics, which they do within a moment.
    /// A client that uses a topic at once would otherwise be told that there is no leader, which
    /// some clients report as an error.
    pub(super) fn await_leaders(&self, names: &[String], timeout: Duration) {
        let until = Instant::now() + timeout.min(LEADERS_WITHIN);
        while !names.is_empty() && !self.shared.is_stopping() && Instant::now() < until {
            let topics = self.shared.store.topics(Some(names));
            let mut brokers = topics.iter().flatten().flat_map(|topic| &topic.brokers);
            if topics.is_ok() && brokers.all(Option::is_some) {
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    pub(super) fn delete_topics(
        &mut self,
        _: &Header,
        request: DeleteTopicsRequest,
    ) -> DeleteTopicsResponse {
        let responses = request.topic_names.into_iter().map(|name| {
            let dropped = self.shared.store.drop_topic(&name).map_err(refusal);
            // Forgotten in any case: if the answer got lost, the topic may be gone although this is
            // an error.
            self.shared.forget_topic(&name);
            let (error_code, error_message) = outcome(dropped);
            DeletedTopic {
                name,
                error_code,
                error_message,
            }
        });
        DeleteTopicsResponse {
            throttle_time_ms: 0,
            responses: responses.collect(),
        }
    }

    pub(super) fn create_partitions(
        &mut self,
        _: &Header,
        request: CreatePartitionsRequest,
    ) -> CreatePartitionsResponse {
        let results = request.topics.into_iter().map(|topic| {
            let (error_code, error_message) = outcome(self.add(&topic, request.validate_only));
            CreatePartitionsResult {
                name: topic.name,
                error_code,
                error_message,
            }
        });
        CreatePartitionsResponse {
            throttle_time_ms: 0,
            results: results.collect(),
        }
    }

    fn add(&self, ask: &CreatePartitionsTopic, validate_only: bool) -> Result<(), Refusal> {
        if ask.assignments.is_some() {
            return Err(assigned());
        }
        let topic = self.shared.store.topic(&ask.name).map_err(refusal)?;
        let has = topic.options.partitions;
        let wanted = u32::try_from(ask.count).ok().filter(|wanted| *wanted > has);
        let Some(wanted) = wanted else {
            let text = format!("topic {:?} has {has} partitions already", ask.name);
            return Err((ErrorCode::INVALID_PARTITIONS, text));
        };
        if validate_only {
            return Ok(());
        }
        let changes = TopicChanges {
            partitions: Some(wanted),
            ..TopicChanges::default()
        };
        self.shared
            .store
            .alter_topic(&ask.name, &changes)
            .map_err(refusal)
    }
}

pub(super) fn refusal(error: Error) -> Refusal {
    (ErrorCode::for_topic(&error), error.text().to_owned())
}

pub(super) fn outcome(done: Result<(), Refusal>) -> (i16, Option<String>) {
    match done {
        Ok(()) => (ErrorCode::NONE.0, None),
        Err((error, text)) => (error.0, Some(text)),
    }
}

fn assigned() -> Refusal {
    let text = "servers share partitions themselves".to_owned();
    (ErrorCode::INVALID_REPLICA_ASSIGNMENT, text)
}

/// The options of a topic to create.
fn options(topic: &CreatableTopic) -> Result<TopicOptions, Refusal> {
    if !topic.assignments.is_empty() {
        return Err(assigned());
    }
    if !matches!(topic.replication_factor, -1 | 1) {
        let text = "copies are those of the PostgreSQL server: the factor is 1".to_owned();
        return Err((ErrorCode::INVALID_REPLICATION_FACTOR, text));
    }
    let partitions = match topic.num_partitions {
        -1 => 1,
        given => u32::try_from(given)
            .ok()
            .filter(|given| *given > 0)
            .ok_or_else(|| {
                let text = format!("a topic cannot have {given} partitions");
                (ErrorCode::INVALID_PARTITIONS, text)
            })?,
    };
    let mut changes = TopicChanges::default();
    let mut partitioner_wanted = PARTITIONER_DEFAULT;
    for config in &topic.configs {
        let config = AlterableConfig {
            name: config.name.clone(),
            config_operation: SET,
            value: config.value.clone(),
        };
        if config.name == PARTITIONER {
            partitioner_wanted = partitioner(&config)?
        } else {
            change(&mut changes, &config)?
        }
    }
    let limit = |value: Option<i64>| value.filter(|value| *value != UNLIMITED);
    Ok(TopicOptions {
        partitions,
        compression: changes.compression.unwrap_or_default(),
        retention_ms: limit(changes.retention_ms),
        retention_bytes: limit(changes.retention_bytes),
        partitioner: partitioner_wanted,
        ..TopicOptions::default()
    })
}

//! Creating, changing and deleting topics, and their settings.
//!
//! Settings are those that topics have here, under the names that Kafka has for them. A setting
//! that a topic cannot have is refused: one that is accepted and does nothing would be found out
//! when it is needed.

use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::record::Codec;
use dyno_pubsub::{Error, Partitioner, Topic, TopicChanges, TopicOptions};

use super::Session;
use crate::error::ErrorCode;
use crate::wire::{
    AlterConfigsResource, AlterConfigsResult, AlterableConfig, CreatableTopic,
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsResult,
    CreatePartitionsTopic, CreateTopicsRequest, CreateTopicsResponse, CreatedConfig, CreatedTopic,
    DeleteTopicsRequest, DeleteTopicsResponse, DeletedTopic, DescribeConfigsRequest,
    DescribeConfigsResource, DescribeConfigsResponse, DescribeConfigsResult, DescribedConfig,
    Header, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, TOPIC_RESOURCE,
};

const RETENTION_MS: &str = "retention.ms";
const RETENTION_BYTES: &str = "retention.bytes";
const COMPRESSION: &str = "compression.type";
const CLEANUP: &str = "cleanup.policy";
const PARTITIONER: &str = "partitioner";
/// What a topic that is created by a client of Kafka gets, so that the keys which SQL and `dyno`
/// send go where the client's own do.
pub(super) const PARTITIONER_DEFAULT: Partitioner = Partitioner::Murmur2;
/// Kafka's word for a body that is stored as the client sent it.
const UNCOMPRESSED: &str = "uncompressed";
/// The number that stands for no limit.
const UNLIMITED: i64 = -1;

/// The longest wait for brokers to take the partitions of a new topic, and the pause between two
/// looks.
pub(super) const LEADERS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

const SET: i8 = 0;
const DELETE: i8 = 1;

/// Why something is refused.
type Refusal = (ErrorCode, String);

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
    /// A client that uses a topic at once would otherwise be told that there is no leader, which some
    /// clients report as an error.
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

    pub(super) fn describe_configs(
        &mut self,
        _: &Header,
        request: DescribeConfigsRequest,
    ) -> DescribeConfigsResponse {
        let results = request.resources.into_iter().map(|resource| {
            let configs = self.configs(&resource);
            let (error_code, error_message) =
                outcome(configs.as_ref().map(drop).map_err(Clone::clone));
            DescribeConfigsResult {
                error_code,
                error_message,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
                configs: configs.unwrap_or_default(),
            }
        });
        DescribeConfigsResponse {
            throttle_time_ms: 0,
            results: results.collect(),
        }
    }

    fn configs(&self, ask: &DescribeConfigsResource) -> Result<Vec<DescribedConfig>, Refusal> {
        if ask.resource_type != TOPIC_RESOURCE {
            // Servers have no settings that a client could change or needs to know.
            return Ok(Vec::new());
        }
        let topic = self
            .shared
            .store
            .topic(&ask.resource_name)
            .map_err(refusal)?;
        let mut configs = described(&topic.options);
        if let Some(wanted) = &ask.configuration_keys {
            configs.retain(|config| wanted.contains(&config.name));
        }
        Ok(configs)
    }

    pub(super) fn alter_configs(
        &mut self,
        _: &Header,
        request: IncrementalAlterConfigsRequest,
    ) -> IncrementalAlterConfigsResponse {
        let responses = request.resources.into_iter().map(|resource| {
            let (error_code, error_message) = outcome(self.alter(&resource, request.validate_only));
            AlterConfigsResult {
                error_code,
                error_message,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
            }
        });
        IncrementalAlterConfigsResponse {
            throttle_time_ms: 0,
            responses: responses.collect(),
        }
    }

    fn alter(&self, resource: &AlterConfigsResource, validate_only: bool) -> Result<(), Refusal> {
        if resource.resource_type != TOPIC_RESOURCE {
            let text = "only topics have settings here".to_owned();
            return Err((ErrorCode::INVALID_REQUEST, text));
        }
        let topic = self.shared.store.topic(&resource.resource_name);
        let topic = topic.map_err(refusal)?;
        let mut changes = TopicChanges::default();
        for config in &resource.configs {
            match config.name == PARTITIONER {
                true => keep_partitioner(&topic, config)?,
                false => change(&mut changes, config)?,
            }
        }
        if validate_only {
            return Ok(());
        }
        self.shared
            .store
            .alter_topic(&resource.resource_name, &changes)
            .map_err(refusal)
    }
}

fn refusal(error: Error) -> Refusal {
    (ErrorCode::of_topic(&error), error.text().to_owned())
}

fn outcome(done: Result<(), Refusal>) -> (i16, Option<String>) {
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
        match config.name == PARTITIONER {
            true => partitioner_wanted = partitioner(&config)?,
            false => change(&mut changes, &config)?,
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

fn invalid(text: String) -> Refusal {
    (ErrorCode::INVALID_CONFIG, text)
}

/// The value that a setting is to have; `None` stands for its default.
fn wanted(config: &AlterableConfig) -> Result<Option<&str>, Refusal> {
    match (config.config_operation, &config.value) {
        (SET, Some(value)) => Ok(Some(value.as_str())),
        (DELETE, _) => Ok(None),
        _ => Err(invalid(format!("{} can be set or deleted", config.name))),
    }
}

/// The partitioner that a topic is to have.
fn partitioner(config: &AlterableConfig) -> Result<Partitioner, Refusal> {
    match wanted(config)? {
        None => Ok(PARTITIONER_DEFAULT),
        Some(name) => Partitioner::named(name).map_err(|error| invalid(error.text().to_owned())),
    }
}

/// Refuses another partitioner than the topic has. The same one is let through, because tools send
/// all settings of a topic when they change one of them.
fn keep_partitioner(topic: &Topic, config: &AlterableConfig) -> Result<(), Refusal> {
    let has = topic.options.partitioner;
    if partitioner(config)? == has {
        return Ok(());
    }
    Err(invalid(format!(
        "the partitioner of topic {:?} stays {}: with another one its keys would move to other \
         partitions, away from their earlier records",
        topic.name,
        has.name()
    )))
}

/// Adds the change of one setting.
fn change(changes: &mut TopicChanges, config: &AlterableConfig) -> Result<(), Refusal> {
    let name = config.name.as_str();
    let value = wanted(config)?;
    let number = || match value {
        None => Ok(UNLIMITED),
        Some(value) => value
            .parse::<i64>()
            .map_err(|_| invalid(format!("{name} is {value:?}, which is not a number"))),
    };
    match name {
        RETENTION_MS => changes.retention_ms = Some(number()?),
        RETENTION_BYTES => changes.retention_bytes = Some(number()?),
        COMPRESSION => {
            let codec = match value {
                None | Some("producer" | UNCOMPRESSED) => Ok(Codec::None),
                Some(value) => Codec::named(value),
            };
            changes.compression =
                Some(codec.map_err(|_| invalid(format!("{name} is {UNCOMPRESSED}, lz4 or zstd")))?);
        }
        CLEANUP if matches!(value, None | Some("delete")) => {}
        CLEANUP => {
            return Err(invalid(
                "topics are not compacted: the policy is delete".to_owned(),
            ));
        }
        _ => return Err(invalid(format!("topics here have no setting {name}"))),
    }
    Ok(())
}

/// The settings of a topic that was created, as DescribeConfigs says them.
fn created_configs(options: &TopicOptions) -> Vec<CreatedConfig> {
    let configs = described(options).into_iter();
    let created = configs.map(|config| CreatedConfig {
        name: config.name,
        value: config.value,
        read_only: config.read_only,
        config_source: config.config_source,
        is_sensitive: config.is_sensitive,
    });
    created.collect()
}

/// The settings of a topic, as Kafka names them.
fn described(options: &TopicOptions) -> Vec<DescribedConfig> {
    const OF_TOPIC: i8 = 1;
    const DEFAULT: i8 = 5;
    const TEXT: i8 = 2;
    const NUMBER: i8 = 5;
    const LIST: i8 = 7;
    let config =
        |name: &str, value: String, is_set: bool, kind: i8, meaning: &str| DescribedConfig {
            name: name.to_owned(),
            value: Some(value),
            read_only: matches!(name, CLEANUP | PARTITIONER),
            config_source: if is_set { OF_TOPIC } else { DEFAULT },
            is_sensitive: false,
            synonyms: Vec::new(),
            config_type: kind,
            documentation: Some(meaning.to_owned()),
        };
    let limit = |value: Option<i64>| value.unwrap_or(UNLIMITED).to_string();
    let codec = match options.compression {
        Codec::None => UNCOMPRESSED,
        codec => codec.name(),
    };
    vec![
        config(
            CLEANUP,
            "delete".to_owned(),
            false,
            LIST,
            "Old records are dropped.",
        ),
        config(
            COMPRESSION,
            codec.to_owned(),
            options.compression != Codec::None,
            TEXT,
            "How rows are compressed in the database.",
        ),
        config(
            PARTITIONER,
            options.partitioner.name().to_owned(),
            options.partitioner != PARTITIONER_DEFAULT,
            TEXT,
            "The hash by which SQL and dyno choose the partition of a key; clients of Kafka choose \
             by their own settings.",
        ),
        config(
            RETENTION_BYTES,
            limit(options.retention_bytes),
            options.retention_bytes.is_some(),
            NUMBER,
            "The oldest records of a partition are dropped while it is larger; -1 keeps them.",
        ),
        config(
            RETENTION_MS,
            limit(options.retention_ms),
            options.retention_ms.is_some(),
            NUMBER,
            "Records that are older are dropped; -1 keeps them.",
        ),
    ]
}

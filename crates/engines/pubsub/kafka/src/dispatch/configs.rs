//! Settings of topics.
//!
//! They are those that topics have here, under the names that Kafka has for them. A setting that a
//! topic cannot have is refused: one that is accepted and does nothing would be found out when it
//! is needed.

use dyno_pubsub::record::Codec;
use dyno_pubsub::{Partitioner, Topic, TopicChanges, TopicOptions};

use super::Session;
use super::topics::{Refusal, outcome, refusal};
use crate::error::ErrorCode;
use crate::wire::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResponse, AlterConfigsResult,
    AlterableConfig, CreatedConfig, DescribeConfigsRequest, DescribeConfigsResource,
    DescribeConfigsResponse, DescribeConfigsResult, DescribedConfig, Header,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, ReplaceConfigsResource,
    ReplacedConfig, TOPIC_RESOURCE,
};

const RETENTION_MS: &str = "retention.ms";
const RETENTION_BYTES: &str = "retention.bytes";
const COMPRESSION: &str = "compression.type";
const CLEANUP: &str = "cleanup.policy";
pub(super) const PARTITIONER: &str = "partitioner";
/// What a topic that is created by a client of Kafka gets, so that the keys which SQL and `dyno`
/// send go where the client's own do.
pub(super) const PARTITIONER_DEFAULT: Partitioner = Partitioner::Murmur2;
/// Kafka's word for a body that is stored as the client sent it.
const UNCOMPRESSED: &str = "uncompressed";
/// The number that stands for no limit.
pub(super) const UNLIMITED: i64 = -1;
/// The settings that go back to their defaults when all are replaced and they are not named. The
/// partitioner does not, because it cannot change.
const REPLACED: [&str; 4] = [RETENTION_MS, RETENTION_BYTES, COMPRESSION, CLEANUP];

pub(super) const SET: i8 = 0;
const DELETE: i8 = 1;

impl Session {
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
        let validate_only = request.validate_only;
        let responses = request.resources.into_iter();
        IncrementalAlterConfigsResponse {
            throttle_time_ms: 0,
            responses: responses
                .map(|resource| self.altered(resource, validate_only))
                .collect(),
        }
    }

    pub(super) fn replace_configs(
        &mut self,
        _: &Header,
        request: AlterConfigsRequest,
    ) -> AlterConfigsResponse {
        let validate_only = request.validate_only;
        let responses = request.resources.into_iter();
        AlterConfigsResponse {
            throttle_time_ms: 0,
            responses: responses
                .map(|resource| self.altered(replacing(resource), validate_only))
                .collect(),
        }
    }

    fn altered(&self, resource: AlterConfigsResource, validate_only: bool) -> AlterConfigsResult {
        let (error_code, error_message) = outcome(self.alter(&resource, validate_only));
        AlterConfigsResult {
            error_code,
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
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
            if config.name == PARTITIONER {
                keep_partitioner(&topic, config)?
            } else {
                change(&mut changes, config)?
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

/// The changes that leave a topic with these settings and no others.
fn replacing(resource: ReplaceConfigsResource) -> AlterConfigsResource {
    let is_named = |name: &str| resource.configs.iter().any(|config| config.name == name);
    let others = REPLACED.into_iter().filter(|name| !is_named(name));
    let others: Vec<_> = others
        .map(|name| ReplacedConfig {
            name: name.to_owned(),
            value: None,
        })
        .collect();
    let all = resource.configs.into_iter().chain(others);
    let configs = all.map(|config| AlterableConfig {
        config_operation: if config.value.is_some() { SET } else { DELETE },
        name: config.name,
        value: config.value,
    });
    AlterConfigsResource {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        configs: configs.collect(),
    }
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
pub(super) fn partitioner(config: &AlterableConfig) -> Result<Partitioner, Refusal> {
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
pub(super) fn change(changes: &mut TopicChanges, config: &AlterableConfig) -> Result<(), Refusal> {
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
pub(super) fn created_configs(options: &TopicOptions) -> Vec<CreatedConfig> {
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

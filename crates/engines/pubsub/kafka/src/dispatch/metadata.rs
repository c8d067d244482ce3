//! Which servers there are, and which has which partition.

use std::collections::HashMap;

use dyno_pubsub::{Result, TopicOptions};

use super::Session;
use super::configs::PARTITIONER_DEFAULT;
use super::topics::LEADERS_WITHIN;
use crate::error::ErrorCode;
use crate::store::{Node, PlacedTopic};
use crate::wire::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse, Header, MetadataBroker,
    MetadataPartition, MetadataRequest, MetadataResponse, MetadataTopic,
};

/// What a client may do is not known here.
pub const UNKNOWN_OPERATIONS: i32 = i32::MIN;
/// In this version an empty list of topics stands for all.
const EMPTY_IS_ALL: i16 = 0;
/// From this version on a client says whether topics that are not there shall be created.
const ASKS_TO_CREATE_SINCE: i16 = 4;
/// The longest name that a topic can have.
const MOST_NAME_BYTES: usize = 100;

impl Session {
    pub(super) fn metadata(
        &mut self,
        header: &Header,
        request: MetadataRequest,
    ) -> MetadataResponse {
        let names: Option<Vec<String>> = (request.topics)
            .filter(|topics| header.version != EMPTY_IS_ALL || !topics.is_empty())
            .map(|topics| topics.into_iter().map(|topic| topic.name).collect());
        if header.version < ASKS_TO_CREATE_SINCE || request.allow_auto_topic_creation {
            self.create_missing(names.as_deref().unwrap_or_default());
        }
        let (nodes, cluster) = self.shared.store.nodes_or_last(self.shared.node);
        let topics = self
            .topics(names.as_deref(), &nodes)
            .unwrap_or_else(|error| {
                let code = ErrorCode::for_topic(&error);
                let names = names.iter().flatten();
                names
                    .map(|name| topic_without_partitions(name, code))
                    .collect()
            });
        MetadataResponse {
            throttle_time_ms: 0,
            brokers: nodes.iter().map(broker).collect(),
            cluster_id: Some(cluster),
            controller_id: self.shared.node,
            topics,
            cluster_authorized_operations: UNKNOWN_OPERATIONS,
        }
    }

    /// Creates the topics of these names that are not there, if this server does so.
    fn create_missing(&self, names: &[String]) {
        let Some(partitions) = self.shared.create_partitions.filter(|_| !names.is_empty()) else {
            return;
        };
        // While the database is away, the answer says so.
        let Ok(found) = self.shared.store.topics(Some(names)) else {
            return;
        };
        let is_there = |name: &String| found.iter().any(|topic| topic.name == *name);
        let mut missing = names.to_vec();
        missing.retain(|name| is_name(name) && !is_there(name));
        for name in &missing {
            let options = TopicOptions {
                partitions,
                partitioner: PARTITIONER_DEFAULT,
                ..TopicOptions::default()
            };
            // Another client may have created it just now, and a topic that cannot be created is
            // missing in the answer.
            let _ = self.shared.store.create_topic(name, &options);
        }
        self.await_leaders(&missing, LEADERS_WITHIN);
    }

    fn topics(&self, names: Option<&[String]>, nodes: &[Node]) -> Result<Vec<MetadataTopic>> {
        let leaders: HashMap<&str, i32> = nodes
            .iter()
            .map(|node| (node.broker_address.as_str(), node.id))
            .collect();
        let mut found = self.shared.store.topics(names)?;
        let Some(names) = names else {
            let all = found
                .iter()
                .map(|topic| topic_with_partitions(topic, &leaders));
            return Ok(all.collect());
        };
        // In the order in which they were asked for.
        let topics =
            names.iter().map(
                |name| match found.iter().position(|topic| topic.name == *name) {
                    Some(at) => topic_with_partitions(&found.swap_remove(at), &leaders),
                    None => topic_without_partitions(name, missing(name)),
                },
            );
        Ok(topics.collect())
    }

    pub(super) fn describe_cluster(
        &mut self,
        _: &Header,
        _: DescribeClusterRequest,
    ) -> DescribeClusterResponse {
        let (nodes, error) = match self.shared.store.nodes(self.shared.node) {
            Ok(nodes) => (nodes, ErrorCode::NONE),
            Err(error) => (Default::default(), ErrorCode::for_topic(&error)),
        };
        let (nodes, cluster_id) = nodes;
        DescribeClusterResponse {
            error_code: error.0,
            cluster_id,
            controller_id: self.shared.node,
            brokers: (nodes.into_iter())
                .map(|node| DescribeClusterBroker {
                    broker_id: node.id,
                    host: node.host,
                    port: node.port,
                    rack: None,
                })
                .collect(),
            cluster_authorized_operations: UNKNOWN_OPERATIONS,
            ..DescribeClusterResponse::default()
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MOST_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn missing(name: &str) -> ErrorCode {
    if is_name(name) {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    } else {
        ErrorCode::INVALID_TOPIC_EXCEPTION
    }
}

fn broker(node: &Node) -> MetadataBroker {
    MetadataBroker {
        node_id: node.id,
        host: node.host.clone(),
        port: node.port,
        rack: None,
    }
}

fn topic_without_partitions(name: &str, error: ErrorCode) -> MetadataTopic {
    MetadataTopic {
        error_code: error.0,
        name: name.to_owned(),
        topic_authorized_operations: UNKNOWN_OPERATIONS,
        ..MetadataTopic::default()
    }
}

fn topic_with_partitions(topic: &PlacedTopic, leaders: &HashMap<&str, i32>) -> MetadataTopic {
    let partitions = (0..).zip(&topic.brokers).map(|(partition_index, broker)| {
        let leader = broker.as_deref().and_then(|address| leaders.get(address));
        let nodes: Vec<i32> = leader.copied().into_iter().collect();
        MetadataPartition {
            error_code: match leader {
                Some(_) => ErrorCode::NONE.0,
                None => ErrorCode::LEADER_NOT_AVAILABLE.0,
            },
            partition_index,
            leader_id: leader.copied().unwrap_or(-1),
            leader_epoch: -1,
            replica_nodes: nodes.clone(),
            isr_nodes: nodes,
            offline_replicas: Vec::new(),
        }
    });
    MetadataTopic {
        partitions: partitions.collect(),
        ..topic_without_partitions(&topic.name, ErrorCode::NONE)
    }
}

//! What the connections of a server share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_net::Share;
use dyno_pubsub::record::Codec;
use dyno_pubsub::wire::{Client, ClientOptions};
use dyno_pubsub::{Code, Error, Result, TopicPartition};
use dyno_serve::{Counter, Gauge, Registry, ServeError, Token};
use parking_lot::Mutex;

use crate::coordinator::Coordinator;
use crate::sequences::Sequences;
use crate::store::Store;

/// How long the number of a topic is believed. A topic that is dropped and made again has another.
const TOPIC_BELIEVED: Duration = Duration::from_secs(5);

/// What the names of all metrics begin with.
const PREFIX: &str = "dyno_pubsub_kafka_";

/// What the connections of a server share.
pub struct Shared {
    pub store: Store,
    pub coordinator: Coordinator,
    pub sequences: Sequences,
    /// The number of this server.
    pub node: i32,
    /// Where this process's own broker listens.
    pub broker: String,
    pub token: Option<Token>,
    /// The memory for requests from their first byte to their answer.
    pub frames: Arc<Share>,
    pub stopping: AtomicBool,
    pub counts: Counts,
    /// The partitions of topics that are created because a client asks for them; `None` if such
    /// topics are refused.
    pub create_partitions: Option<u32>,
    pub topics: Mutex<HashMap<String, (KnownTopic, Instant)>>,
}

/// What a batch needs to know of its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownTopic {
    pub topic_id: i32,
    pub compression: Codec,
    /// How many partitions it has.
    pub partitions: i32,
}

/// What is counted, for the metrics.
#[derive(Debug)]
pub struct Counts {
    /// Connections now.
    pub connections: Gauge,
    /// Requests since the start.
    pub requests: Counter,
    /// Connections that were closed because a request was not one, or not offered.
    pub broken: Counter,
    /// Connections that were closed because there were too many.
    pub refused: Counter,
    /// Connections that did not show the token.
    pub denied: Counter,
}

impl Counts {
    /// Registers what is counted under `dyno_pubsub_kafka_`.
    ///
    /// # Errors
    /// If one of the names is taken.
    pub fn new(registry: &Registry) -> std::result::Result<Counts, ServeError> {
        let gauge = |name: &str, help| registry.gauge(&format!("{PREFIX}{name}"), help, &[]);
        let counter = |name: &str, help| registry.counter(&format!("{PREFIX}{name}"), help, &[]);
        Ok(Counts {
            connections: gauge("connections", "Connections of Kafka's clients.")?,
            requests: counter("requests_total", "Requests of Kafka's clients.")?,
            broken: counter(
                "broken_connections_total",
                "Connections closed because a request was not one, or not offered.",
            )?,
            refused: counter(
                "refused_connections_total",
                "Connections closed because there were too many.",
            )?,
            denied: counter(
                "denied_connections_total",
                "Connections closed because their clients did not show the token in time.",
            )?,
        })
    }
}

impl Shared {
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Connects to the broker. Each connection of a client has one of its own there, so that the
    /// broker's limits for one client hold for each of Kafka's.
    pub fn connect(&self) -> Result<Client> {
        let token = self.token.as_ref().map(|token| token.expose().to_vec());
        let options = ClientOptions {
            token: String::from_utf8(token.unwrap_or_default()).unwrap_or_default(),
            name: "kafka".to_owned(),
            ..ClientOptions::default()
        };
        Client::connect(&self.broker, &options)
    }

    /// The number of a topic; see [`Shared::topic`].
    pub fn topic_id(&self, name: &str) -> Result<i32> {
        self.topic(name).map(|topic| topic.topic_id)
    }

    /// A partition of a topic.
    ///
    /// # Errors
    /// `unknown-topic` also where the topic has no such partition. The broker would say that it is
    /// not the partition's, and a client would look for another one that is.
    pub fn partition(&self, name: &str, partition: i32) -> Result<TopicPartition> {
        let topic = self.topic(name)?;
        if !(0..topic.partitions).contains(&partition) {
            let text = format_args!("topic {name:?} has no partition {partition}");
            return Err(Error::new(Code::UnknownTopic, text));
        }
        Ok(TopicPartition {
            topic_id: topic.topic_id,
            partition,
        })
    }

    /// What is known of a topic.
    ///
    /// # Errors
    /// `unknown-topic`, also for a topic with partitions on other clusters.
    pub fn topic(&self, name: &str) -> Result<KnownTopic> {
        let known = self.topics.lock().get(name).copied();
        if let Some((topic, at)) = known
            && at.elapsed() < TOPIC_BELIEVED
        {
            return Ok(topic);
        }
        let topics = self.store.topics(Some(&[name.to_owned()]))?;
        let topic = topics.first().ok_or_else(|| {
            let text = format_args!("there is no topic {name:?} on this cluster alone");
            Error::new(Code::UnknownTopic, text)
        })?;
        let known = KnownTopic {
            topic_id: topic.topic_id,
            compression: topic.compression,
            partitions: topic.brokers.len() as i32,
        };
        let mut topics = self.topics.lock();
        topics.retain(|_, (_, at)| at.elapsed() < TOPIC_BELIEVED);
        topics.insert(name.to_owned(), (known, Instant::now()));
        Ok(known)
    }

    /// Looks a topic up again at the next request.
    pub fn forget_topic(&self, name: &str) {
        self.topics.lock().remove(name);
    }
}

//! What the connections of a server share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_net::Share;
use dyno_pubsub::wire::{Client, ClientOptions};
use dyno_pubsub::{Code, Error, Result};
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
    pub topic_ids: Mutex<HashMap<String, (i32, Instant)>>,
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

    /// The number of a topic.
    ///
    /// # Errors
    /// `unknown-topic`, also for a topic with partitions on other clusters.
    pub fn topic_id(&self, name: &str) -> Result<i32> {
        let known = self.topic_ids.lock().get(name).copied();
        if let Some((topic_id, at)) = known
            && at.elapsed() < TOPIC_BELIEVED
        {
            return Ok(topic_id);
        }
        let topics = self.store.topics(Some(&[name.to_owned()]))?;
        let topic = topics.first().ok_or_else(|| {
            let text = format_args!("there is no topic {name:?} on this cluster alone");
            Error::new(Code::UnknownTopic, text)
        })?;
        let mut topic_ids = self.topic_ids.lock();
        topic_ids.retain(|_, (_, at)| at.elapsed() < TOPIC_BELIEVED);
        topic_ids.insert(name.to_owned(), (topic.topic_id, Instant::now()));
        Ok(topic.topic_id)
    }

    /// Looks the number of a topic up again at the next request.
    pub fn forget_topic(&self, name: &str) {
        self.topic_ids.lock().remove(name);
    }
}

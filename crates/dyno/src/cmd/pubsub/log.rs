//! The log that the arguments name: behind a broker, or directly on a PostgreSQL server.

use std::sync::Arc;

use anyhow::bail;
use dyno_pubsub::wire::{
    AlterTopic, Client, ClientOptions, Counter, CreateTopic, DescribeGroups, DropGroup, DropTopic,
    ListGroups, ListKept, ListQueues, ListTopics, ResetGroup, Status,
};
use dyno_pubsub::{
    Address, Code, Connection, Dsn, Error, GroupState, Moved, NamedCluster, QueueState, Reset,
    RetentionState, TopicChanges, TopicOptions, TopicState,
};
use dyno_serve::rustls::ClientConfig;
use dyno_serve::tls;

use crate::args::{BROKER_DEFAULT, PubsubPlaceArgs};
use crate::secrets;

/// A connection to administer topics and groups.
pub enum Log {
    Server(Box<Connection>),
    Broker(Client),
}

/// Where producers and consumers connect to.
pub fn address(place: &PubsubPlaceArgs) -> anyhow::Result<Address> {
    if let Some(dsn) = &place.dsn {
        return Ok(Address::Server(Box::new(Dsn::parse(dsn)?)));
    }
    let broker = place.broker.as_deref().unwrap_or(BROKER_DEFAULT);
    Ok(Address::Broker(broker.to_owned()))
}

/// The token for a broker that requires one.
pub fn token(place: &PubsubPlaceArgs) -> anyhow::Result<Option<String>> {
    secrets::token(place.token_file.as_deref())
}

/// The roots that a broker's certificate must lead to; `None` without TLS.
pub fn tls(place: &PubsubPlaceArgs) -> anyhow::Result<Option<Arc<ClientConfig>>> {
    Ok(place.tls_ca.as_deref().map(tls::client).transpose()?)
}

/// Adds the remedy to the error of a broker that cannot be reached.
pub fn without_broker(place: &PubsubPlaceArgs, error: Error) -> Error {
    if place.dsn.is_some() || error.kind() != Code::ServerLost {
        return error;
    }
    let broker = place.broker.as_deref().unwrap_or(BROKER_DEFAULT);
    let text = format_args!(
        "no broker at {broker} ({}); start one with `dyno pubsub serve --data DIR`, or use --dsn",
        error.text()
    );
    Error::with_retry(error.kind(), error.retry(), text)
}

impl Log {
    pub fn open(place: &PubsubPlaceArgs) -> anyhow::Result<Log> {
        match address(place)? {
            Address::Server(dsn) => {
                let mut connection = Connection::open(&dsn)?;
                connection.check_schema()?;
                Ok(Log::Server(Box::new(connection)))
            }
            Address::Broker(broker) => {
                let options = ClientOptions {
                    token: token(place)?.unwrap_or_default(),
                    name: "dyno".to_owned(),
                    tls: tls(place)?,
                    ..ClientOptions::default()
                };
                let client = Client::connect(&broker, &options);
                Ok(Log::Broker(
                    client.map_err(|error| without_broker(place, error))?,
                ))
            }
        }
    }

    pub fn create_topic(&mut self, name: &str, options: &TopicOptions) -> dyno_pubsub::Result<()> {
        match self {
            Log::Server(connection) => connection.create_topic(name, options).map(|_| ()),
            Log::Broker(client) => {
                client.ask(&CreateTopic::new(name, options))?;
                // The request that creates a topic lacks these two options, so they follow in a
                // second one. If that fails, the topic exists with their defaults.
                let defaults = TopicOptions::default();
                let range_records = Some(options.range_records);
                let changes = TopicChanges {
                    retain_for_groups: options.retain_for_groups.then_some(true),
                    range_records: range_records.filter(|n| *n != defaults.range_records),
                    ..TopicChanges::default()
                };
                if changes == TopicChanges::default() {
                    Ok(())
                } else {
                    client.ask(&AlterTopic::new(name, &changes)).map(|_| ())
                }
            }
        }
    }

    pub fn create_placed_topic(
        &mut self,
        name: &str,
        options: &TopicOptions,
        clusters: &[NamedCluster],
    ) -> anyhow::Result<()> {
        match self {
            Log::Server(connection) => {
                connection.create_placed_topic(name, options, clusters)?;
                Ok(())
            }
            Log::Broker(_) => {
                bail!("--add-cluster needs --dsn: a broker creates topics only on its own server")
            }
        }
    }

    pub fn alter_topic(&mut self, name: &str, changes: &TopicChanges) -> dyno_pubsub::Result<()> {
        match self {
            Log::Server(connection) => connection.alter_topic(name, changes),
            Log::Broker(client) => client.ask(&AlterTopic::new(name, changes)).map(|_| ()),
        }
    }

    pub fn drop_topic(&mut self, name: &str) -> dyno_pubsub::Result<()> {
        let topic = name.to_owned();
        match self {
            Log::Server(connection) => connection.drop_topic(name),
            Log::Broker(client) => client.ask(&DropTopic { topic }).map(|_| ()),
        }
    }

    /// All topics, in the order of their names.
    pub fn topics(&mut self) -> dyno_pubsub::Result<Vec<TopicState>> {
        match self {
            Log::Server(connection) => connection.topic_states(),
            Log::Broker(client) => client.ask(&ListTopics {})?.read(),
        }
    }

    /// All queues, in the order of their names.
    pub fn queues(&mut self) -> dyno_pubsub::Result<Vec<QueueState>> {
        match self {
            Log::Server(connection) => connection.queue_states(),
            Log::Broker(client) => Ok(client.ask(&ListQueues {})?.read()),
        }
    }

    /// All groups of a topic by name.
    pub fn groups(&mut self, topic: &str) -> dyno_pubsub::Result<Vec<GroupState>> {
        match self {
            Log::Server(connection) => connection.group_states(topic),
            Log::Broker(client) => {
                let topic = topic.to_owned();
                Ok(client.ask(&DescribeGroups { topic })?.read())
            }
        }
    }

    /// All groups of all topics, each with its topic.
    pub fn all_groups(&mut self) -> dyno_pubsub::Result<Vec<(String, GroupState)>> {
        match self {
            Log::Server(connection) => connection.group_lags(),
            Log::Broker(client) => Ok(client.ask(&ListGroups {})?.read()),
        }
    }

    /// Moves a group to another position.
    pub fn reset_group(
        &mut self,
        topic: &str,
        group: &str,
        reset: &Reset,
    ) -> dyno_pubsub::Result<Vec<Moved>> {
        match self {
            Log::Server(connection) => connection.reset_group(topic, group, reset),
            Log::Broker(client) => Ok(client.ask(&ResetGroup::new(topic, group, reset))?.read()),
        }
    }

    /// Drops a group with its cursors.
    pub fn drop_group(&mut self, topic: &str, group: &str, force: bool) -> dyno_pubsub::Result<()> {
        match self {
            Log::Server(connection) => connection.drop_group(topic, group, force),
            Log::Broker(client) => {
                let (topic, group) = (topic.to_owned(), group.to_owned());
                let ask = DropGroup {
                    topic,
                    group,
                    force,
                };
                client.ask(&ask).map(|_| ())
            }
        }
    }

    /// Since when the records of each partition are kept; empty if the broker is too old to tell.
    pub fn retention(&mut self) -> dyno_pubsub::Result<Vec<RetentionState>> {
        match self {
            Log::Server(connection) => connection.retention(),
            Log::Broker(client) => match client.ask(&ListKept {}) {
                Err(error) if error.kind() == Code::BadArgument => Ok(Vec::new()),
                kept => Ok(kept?.read()),
            },
        }
    }

    /// The broker's name and counters; `None` without a broker.
    pub fn broker(&mut self) -> dyno_pubsub::Result<Option<(String, Vec<Counter>)>> {
        let Log::Broker(client) = self else {
            return Ok(None);
        };
        let counters = client.ask(&Status {})?.counters;
        Ok(Some((client.broker().to_owned(), counters)))
    }
}

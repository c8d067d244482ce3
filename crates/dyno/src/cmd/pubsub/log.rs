//! The log where the arguments say that it is: behind a broker, or on a server of SQL.

use std::sync::Arc;

use anyhow::bail;
use dyno_pubsub::wire::{
    AlterTopic, Client, ClientOptions, Counter, CreateTopic, DescribeGroups, DropTopic, ListQueues,
    ListTopics, Status,
};
use dyno_pubsub::{
    Address, Connection, Dsn, GroupState, NamedCluster, QueueState, TopicChanges, TopicOptions,
    TopicState,
};
use dyno_pubsub_broker::serve::rustls::ClientConfig;
use dyno_pubsub_broker::serve::tls;

use crate::args::{BROKER_DEFAULT, PubsubPlaceArgs};
use crate::secrets;

/// What topics and groups are asked of.
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

/// What the broker asks for, where it asks.
pub fn token(place: &PubsubPlaceArgs) -> anyhow::Result<Option<String>> {
    secrets::token(place.token_file.as_deref())
}

/// What a broker's certificate is checked by, where TLS is wanted.
pub fn tls(place: &PubsubPlaceArgs) -> anyhow::Result<Option<Arc<ClientConfig>>> {
    Ok(place.tls_ca.as_deref().map(tls::client).transpose()?)
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
                Ok(Log::Broker(Client::connect(&broker, &options)?))
            }
        }
    }

    pub fn create_topic(&mut self, name: &str, options: &TopicOptions) -> dyno_pubsub::Result<()> {
        match self {
            Log::Server(connection) => connection.create_topic(name, options).map(|_| ()),
            Log::Broker(client) => {
                client.ask(&CreateTopic::of(name, options))?;
                // Said by a request of its own: a broker is told the rest when a topic is made.
                let changes = TopicChanges {
                    retain_for_groups: Some(options.retain_for_groups),
                    ..TopicChanges::default()
                };
                match options.retain_for_groups {
                    true => client.ask(&AlterTopic::of(name, &changes)).map(|_| ()),
                    false => Ok(()),
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
                bail!("--on needs --dsn: a broker makes topics on its own server alone")
            }
        }
    }

    pub fn alter_topic(&mut self, name: &str, changes: &TopicChanges) -> dyno_pubsub::Result<()> {
        match self {
            Log::Server(connection) => connection.alter_topic(name, changes),
            Log::Broker(client) => client.ask(&AlterTopic::of(name, changes)).map(|_| ()),
        }
    }

    pub fn drop_topic(&mut self, name: &str) -> dyno_pubsub::Result<()> {
        let topic = name.to_owned();
        match self {
            Log::Server(connection) => connection.drop_topic(name),
            Log::Broker(client) => client.ask(&DropTopic { topic }).map(|_| ()),
        }
    }

    /// All topics by name.
    pub fn topics(&mut self) -> dyno_pubsub::Result<Vec<TopicState>> {
        match self {
            Log::Server(connection) => connection.topic_states(),
            Log::Broker(client) => client.ask(&ListTopics {})?.read(),
        }
    }

    /// All queues by name.
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

    /// The broker's name and what it counts; nothing without a broker.
    pub fn broker(&mut self) -> dyno_pubsub::Result<Option<(String, Vec<Counter>)>> {
        let Log::Broker(client) = self else {
            return Ok(None);
        };
        let counters = client.ask(&Status {})?.counters;
        Ok(Some((client.broker().to_owned(), counters)))
    }
}

//! The jobs of child processes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The job of one child process, with all that it needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "kebab-case")]
pub enum Job {
    /// Send messages to a topic, at a rate.
    Produce(ProduceJob),
    /// Read a topic as a member of a group.
    Consume(ConsumeJob),
    /// Send messages to a queue, at a rate.
    Send(SendJob),
    /// Claim and acknowledge the messages of a queue.
    Work(WorkJob),
    /// Run a broker until told to stop.
    Broker(BrokerJob),
}

/// Which interface of the log a client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speech {
    /// Through the library's producers and consumers.
    Library,
    /// By calling the SQL functions, as any driver can.
    Sql,
    /// Through librdkafka, with Kafka's protocol.
    Kafka,
}

/// The job of a producer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProduceJob {
    /// Which interface it uses.
    pub speech: Speech,
    /// The address, as `Producer::open` takes it, or Kafka's list of servers.
    pub endpoint: String,
    /// The name of the topic.
    pub topic: String,
    /// How many partitions it has.
    pub partitions: u32,
    /// The number of this life.
    pub producer: u32,
    /// How many messages a second it sends.
    pub rate: u32,
    /// Length of a value, bytes.
    pub value_bytes: usize,
    /// Sends again without saying that it is a repetition (SQL only): a mistake that the check must
    /// find.
    pub careless: bool,
}

/// The job of a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumeJob {
    /// Which interface it uses.
    pub speech: Speech,
    /// The address, as `Consumer::open` takes it, or Kafka's list of servers.
    pub endpoint: String,
    /// The name of the topic.
    pub topic: String,
    /// The group's number in the history.
    pub group: u32,
    /// The name of the group in the log.
    pub group_name: String,
    /// The number of this life.
    pub member: u32,
    /// For how long a silent member keeps its partitions, milliseconds.
    pub lease_ms: u64,
    /// Goes on after a lost answer as if it had held nothing (SQL only): a mistake that the check
    /// must find.
    pub careless: bool,
}

/// The job of a sender to a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendJob {
    /// The connection string of the server.
    pub endpoint: String,
    /// The name of the queue.
    pub queue: String,
    /// The number of this life.
    pub producer: u32,
    /// How many messages a second it sends.
    pub rate: u32,
    /// Length of a value, bytes.
    pub value_bytes: usize,
}

/// The job of a worker of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkJob {
    /// The connection string of the server.
    pub endpoint: String,
    /// The name of the queue.
    pub queue: String,
    /// The number of this life.
    pub worker: u32,
}

/// The job of a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerJob {
    /// The connection string of the server.
    pub dsn: String,
    /// The address at which it listens.
    pub listen: String,
    /// Where clients reach it, which is a proxy in front of that address.
    pub advertise: String,
    /// Where it serves clients of Kafka, if it does.
    pub kafka: Option<SocketAddr>,
    /// For how long a silent broker keeps its partitions, milliseconds.
    pub lease_ms: u64,
}

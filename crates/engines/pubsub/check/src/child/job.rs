//! What a child process is told to do.

use serde::{Deserialize, Serialize};

/// The whole task of a child process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "kebab-case")]
pub enum Job {
    /// Send to a topic.
    Produce(ProduceJob),
    /// Read a topic as a member of a group.
    Consume(ConsumeJob),
    /// Send to a queue.
    Send(SendJob),
    /// Do what a queue holds.
    Work(WorkJob),
    /// Be a broker.
    Broker(BrokerJob),
}

/// How a client of a topic speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speech {
    /// Through the library.
    Library,
    /// By calling the SQL functions, as any driver can.
    Sql,
}

/// A producer's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProduceJob {
    /// How.
    pub speech: Speech,
    /// Where: what `Producer::open` takes.
    pub endpoint: String,
    /// To which topic.
    pub topic: String,
    /// How many partitions it has.
    pub partitions: u32,
    /// The number of this life.
    pub producer: u32,
    /// Messages a second.
    pub rate: u32,
    /// Length of a value, bytes.
    pub value_bytes: usize,
    /// Sends again without saying that it is a repetition (SQL only): a fault that the check must
    /// find.
    pub careless: bool,
}

/// A consumer's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumeJob {
    /// How.
    pub speech: Speech,
    /// Where: what `Consumer::open` takes.
    pub endpoint: String,
    /// Which topic.
    pub topic: String,
    /// The group's number in the history.
    pub group: u32,
    /// The group's name.
    pub group_name: String,
    /// The number of this life.
    pub member: u32,
    /// For how long a silent member keeps its partitions, milliseconds.
    pub lease_ms: u64,
    /// Goes on after a lost answer as if nothing had been in it (SQL only): a fault that the check
    /// must find.
    pub careless: bool,
}

/// A queue's sender's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendJob {
    /// The server.
    pub endpoint: String,
    /// Which queue.
    pub queue: String,
    /// The number of this life.
    pub producer: u32,
    /// Messages a second.
    pub rate: u32,
    /// Length of a value, bytes.
    pub value_bytes: usize,
}

/// A queue's worker's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkJob {
    /// The server.
    pub endpoint: String,
    /// Which queue.
    pub queue: String,
    /// The number of this life.
    pub worker: u32,
}

/// A broker's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerJob {
    /// The server.
    pub dsn: String,
    /// Where it listens.
    pub listen: String,
    /// Where clients reach it: a proxy before that.
    pub advertise: String,
    /// For how long a silent broker keeps its partitions, milliseconds.
    pub lease_ms: u64,
}

//! The settings of producers and of consumers.

use std::sync::Arc;
use std::time::Duration;

use dyno_net::rustls::ClientConfig;

use crate::group::WhenLost;
use crate::start::Start;

/// What is promised by a receipt or a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acknowledge {
    /// The records or cursors are on stable storage, also on the standbys that the server waits
    /// for.
    #[default]
    Committed,
    /// The records or cursors are in the server's memory. A crash of the server may lose the last
    /// of them (`synchronous_commit = off`).
    Async,
}

/// The settings of a producer.
#[derive(Debug, Clone)]
pub struct ProducerOptions {
    /// How long a record may wait for others to share its batch. With 0 it waits only while the
    /// append before it is under way.
    pub linger: Duration,
    /// A batch is sent when it has this many bytes.
    pub batch_bytes: usize,
    /// A batch is sent when it has this many records, if it is not sent for its bytes before.
    pub batch_records: usize,
    /// How many bytes may wait for their acknowledgement. With more, `send` blocks.
    pub buffer_bytes: usize,
    /// How many connections there are to each server, in direct mode. Each one appends to its share
    /// of the partitions.
    pub connections: usize,
    /// How long a batch is tried again before its receipts fail.
    pub delivery_timeout: Duration,
    /// What a receipt promises, in direct mode.
    pub acknowledge: Acknowledge,
    /// A name by which a producer that is started again finds what the log has of it, in direct
    /// mode (see [`Producer::sent_before`](super::Producer::sent_before)). One producer at a time
    /// may use a name.
    pub name: Option<String>,
    /// The token that a broker asks for.
    pub token: Option<String>,
    /// TLS to brokers over TCP: what certificates are trusted.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self {
            linger: Duration::ZERO,
            batch_bytes: 256 << 10,
            batch_records: 10_000,
            buffer_bytes: 32 << 20,
            connections: 4,
            delivery_timeout: Duration::from_secs(120),
            acknowledge: Acknowledge::Committed,
            name: None,
            token: None,
            tls: None,
        }
    }
}

/// The settings of a consumer.
#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    /// The member's name in the group. Without one it gets a name that no other member has. Only
    /// one process at a time may use a name: two of them share its partitions and read them twice.
    pub member: Option<String>,
    /// Where a new group begins.
    pub start: Start,
    /// What a new group does when retention removes records that it has not read.
    pub when_lost: WhenLost,
    /// For how long after a heartbeat the group takes the consumer for alive. `poll` alone sends
    /// heartbeats, so call it more often than this.
    pub lease: Duration,
    /// How many bytes of rows one `poll` returns at most; a row that is larger comes alone.
    pub fetch_bytes: usize,
    /// How many records of a partition the consumer may hand out before it stores a new claim. When
    /// the consumer dies, at most so many are reported as delivered twice.
    pub window_records: i64,
    /// What a commit waits for. A cursor that a crash of the server loses only makes some records
    /// be read again, so by default a commit does not wait for the disk.
    pub commits: Acknowledge,
    /// The longest pause between two reads of a topic to which messages come often, in direct mode.
    /// Where they come seldom the consumer waits for a notice of the server instead.
    pub idle_pause: Duration,
    /// The token that a broker asks for.
    pub token: Option<String>,
    /// TLS to brokers over TCP: what certificates are trusted.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self {
            member: None,
            start: Start::Earliest,
            when_lost: WhenLost::Skip,
            lease: Duration::from_secs(10),
            fetch_bytes: 1 << 20,
            window_records: 10_000,
            commits: Acknowledge::Async,
            idle_pause: Duration::from_millis(10),
            token: None,
            tls: None,
        }
    }
}

//! Settings of producers and consumers.

use std::sync::Arc;
use std::time::Duration;

use dyno_net::rustls::ClientConfig;

use crate::group::WhenLost;
use crate::start::Start;

/// What a receipt or a commit means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acknowledge {
    /// The records, or the cursors, are on stable storage, and on the standbys that the server waits for.
    #[default]
    Committed,
    /// They are in the server's memory; a crash of the server may take the last moments of them
    /// (`synchronous_commit = off`).
    Async,
}

/// How a producer batches, waits and retries.
#[derive(Debug, Clone)]
pub struct ProducerOptions {
    /// How long a record may wait for others. 0: it waits only while the append before it is under way.
    pub linger: Duration,
    /// A batch is sent when it has this many bytes.
    pub batch_bytes: usize,
    /// Or this many records.
    pub batch_records: usize,
    /// Bytes that may wait for their acknowledgement; then `send` blocks.
    pub buffer_bytes: usize,
    /// Connections, direct mode: partition p is appended by connection p modulo this.
    pub connections: usize,
    /// How long a batch is tried again before its receipts fail.
    pub delivery_timeout: Duration,
    /// What a receipt means; direct mode.
    pub acknowledge: Acknowledge,
    /// What the producer is known by, so that one that is started again goes on behind what is there: direct mode.
    /// See [`Producer::sent_before`](super::Producer::sent_before). One at a time may have a name.
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

/// How a consumer reads.
#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    /// Its name in the group; one of its own when there is none.
    pub member: Option<String>,
    /// Where a new group begins.
    pub start: Start,
    /// What a new group does when retention took records that it has not read.
    pub when_lost: WhenLost,
    /// How long the consumer is taken for alive when nothing is heard of it. Call `poll` or `commit`
    /// more often.
    pub lease: Duration,
    /// Bytes of rows that one `poll` returns; a row that is larger comes alone.
    pub fetch_bytes: usize,
    /// Records of a partition that may be handed out beyond those committed before the server is told again.
    /// So many are delivered twice at most when the consumer dies.
    pub window_records: i64,
    /// What a commit waits for. A cursor that is lost with the last moments of a crashed server means that some records are
    /// read again, so it is not waited for unless this says so.
    pub commits: Acknowledge,
    /// The longest pause between two looks at a topic to which messages come often, direct mode. Where they come
    /// seldom the server tells of them.
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

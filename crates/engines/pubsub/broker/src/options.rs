//! How a broker is run.

use std::sync::Arc;
use std::time::Duration;

use dyno_net::Address;
use dyno_net::rustls::ServerConfig;
use dyno_pubsub::Dsn;
use dyno_serve::Token;

use crate::error::BrokerError;
use crate::memory::LEAST_BYTES;

/// The settings of one broker.
#[derive(Debug, Clone)]
pub struct Options {
    /// The database with the log.
    pub dsn: Dsn,
    /// Where it listens.
    pub listen: Vec<Address>,
    /// What clients are told to connect to; the first listening address unless it is given.
    pub advertise: Option<Address>,
    /// The secret that clients must know. Needed as soon as others than this machine can reach a
    /// listener.
    pub token: Option<Token>,
    /// TLS on the listeners of TCP.
    pub tls: Option<Arc<ServerConfig>>,
    /// How long it holds a partition without a sign of life.
    pub lease: Duration,
    /// How long a batch waits for others when nothing is being committed. Zero: not at all, and
    /// what comes during a commit goes with the next.
    pub linger: Duration,
    /// The bound on all that it holds for clients, in bytes.
    pub memory_bytes: usize,
    /// Connections that append, at most; there are no more than partitions.
    pub appenders: usize,
    /// Connections that read for consumers that are behind.
    pub readers: usize,
    /// Connections of clients that have said Hello, at most.
    pub most_connections: usize,
    /// Connections of clients that have not, at most; one more takes the place of the oldest.
    pub most_unadmitted: usize,
    /// How long a client may take until its Hello has come whole, TLS included.
    pub hello_wait: Duration,
    /// Answers of one connection that may wait to be read by its client, in bytes.
    pub outbox_bytes: usize,
    /// How long a client may leave its answers unread.
    pub write_wait: Duration,
    /// Bytes a second, over `write_wait`, that a client must read while answers wait for it.
    pub least_rate: u64,
}

impl Options {
    /// The defaults, for a database and one address.
    pub fn new(dsn: Dsn, listen: Address) -> Options {
        Options {
            dsn,
            listen: vec![listen],
            advertise: None,
            token: None,
            tls: None,
            lease: Duration::from_secs(5),
            linger: Duration::ZERO,
            memory_bytes: 256 << 20,
            appenders: 16,
            readers: 2,
            most_connections: 1024,
            most_unadmitted: 64,
            hello_wait: Duration::from_secs(10),
            outbox_bytes: 4 << 20,
            write_wait: Duration::from_secs(15),
            least_rate: 16 << 10,
        }
    }

    /// Refuses settings that cannot work, or that let anybody in.
    pub(crate) fn check(&self) -> Result<(), BrokerError> {
        let wrong = |option, reason: String| Err(BrokerError::Option { option, reason });
        if self.listen.is_empty() {
            return wrong("listen", "no address is given".to_owned());
        }
        let open = self.listen.iter().find(|address| !address.is_local());
        if let Some(open) = open
            && self.token.is_none()
        {
            return wrong(
                "token",
                format!(
                    "none is given, and others than this machine can reach {open}: give clients a \
                     secret, or listen on 127.0.0.1 or at a Unix socket"
                ),
            );
        }
        if self.memory_bytes < LEAST_BYTES {
            let least = LEAST_BYTES >> 20;
            let given = self.memory_bytes;
            return wrong(
                "memory",
                format!("{given} bytes are too few, at least {least} MiB are needed"),
            );
        }
        if self.lease < Duration::from_millis(300) {
            return wrong("lease", "at least 300 ms are needed".to_owned());
        }
        if self.appenders == 0 || self.readers == 0 {
            return wrong("appenders and readers", "one of each is needed".to_owned());
        }
        Ok(())
    }
}

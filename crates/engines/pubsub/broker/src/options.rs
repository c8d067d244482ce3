//! The settings of a broker.

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
    /// The addresses at which it listens; one at least.
    pub listen: Vec<Address>,
    /// What clients are told to connect to; the first listening address unless it is given.
    pub advertise: Option<Address>,
    /// The secret that clients must know. It is required if a listener can be reached from other
    /// machines.
    pub token: Option<Token>,
    /// The TLS settings of the listeners over TCP.
    pub tls: Option<Arc<ServerConfig>>,
    /// How long it holds a partition without renewing the lease.
    pub lease: Duration,
    /// How long a batch waits for others while nothing is being committed. With zero it does not
    /// wait; batches that come during a commit share the next one.
    pub linger: Duration,
    /// The bound on the memory that it holds for clients, in bytes.
    pub memory_bytes: usize,
    /// The most connections that append. There are never more than partitions.
    pub appenders: usize,
    /// How many connections read for consumers that are behind.
    pub readers: usize,
    /// The most connections of clients that have said Hello.
    pub most_connections: usize,
    /// The most connections of clients that have not said Hello. A further one takes the place of
    /// the oldest.
    pub most_unadmitted: usize,
    /// How long a client may take to send its whole Hello, TLS included.
    pub hello_wait: Duration,
    /// The most bytes of answers that may wait for one client to read them.
    pub outbox_bytes: usize,
    /// How long a client may leave its answers unread.
    pub write_wait: Duration,
    /// How many bytes a second, over `write_wait`, a client must read while answers wait for it.
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
            // All clients of an application start at once, and a busy machine admits them late.
            most_unadmitted: 256,
            hello_wait: Duration::from_secs(10),
            outbox_bytes: 4 << 20,
            write_wait: Duration::from_secs(15),
            least_rate: 16 << 10,
        }
    }

    /// Refuses settings that cannot work, or that would admit every client of the network.
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

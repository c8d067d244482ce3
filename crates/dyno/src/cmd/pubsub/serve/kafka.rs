//! The front for Kafka's clients, which reaches the broker of this process at a private socket.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, anyhow};
use dyno_net::Address;
use dyno_pubsub::Dsn;
use dyno_pubsub_broker::Broker;
use dyno_pubsub_kafka::{KafkaServer, Options};
use dyno_serve::{Registry, Token};
use tempfile::TempDir;

use super::{server_tls, socket_address};
use crate::args::PubsubServeArgs;

/// The most connections of Kafka's clients. Each has one at the broker, whose limit is the same.
const MOST_CONNECTIONS: usize = 1_000;
/// The share of the memory that requests of Kafka's clients may take beside the broker's own.
const MEMORY_SHARE: usize = 4;

/// A front that is about to start.
pub struct Front {
    listen: SocketAddr,
    /// Holds the private socket.
    folder: TempDir,
}

/// A front that runs.
pub struct Served {
    server: KafkaServer,
    _folder: TempDir,
}

impl Front {
    pub fn new(at: &str) -> anyhow::Result<Front> {
        let listen = socket_address("--kafka", at)?;
        let folder = tempfile::Builder::new()
            .prefix("dyno-kafka-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir()
            .context("cannot make a directory for a socket")?;
        Ok(Front { listen, folder })
    }

    /// Where the broker has to listen for it, in a directory that only this user can enter.
    pub fn broker(&self) -> Address {
        Address::Unix(self.folder.path().join("broker.sock"))
    }

    pub fn start(
        self,
        args: &PubsubServeArgs,
        dsn: &Dsn,
        broker: &Broker,
        token: Option<&Token>,
        registry: &Registry,
    ) -> anyhow::Result<Served> {
        let first = broker.addresses().into_iter().next();
        let first = first.ok_or_else(|| anyhow!("the broker does not listen"))?;
        let advertise = args
            .kafka_advertise
            .as_deref()
            .map(host_and_port)
            .transpose()?;
        let memory = usize::try_from(args.memory).context("--memory")?;
        let server = KafkaServer::start(Options {
            dsn: dsn.clone(),
            broker: self.broker(),
            broker_address: first.to_string(),
            listen: self.listen,
            advertise,
            token: token.cloned(),
            tls: server_tls(args)?,
            lease: args.lease,
            memory_bytes: memory / MEMORY_SHARE,
            most_connections: MOST_CONNECTIONS,
            create_partitions: args.kafka_create_topics,
            registry: registry.clone(),
        })
        .context("--kafka")?;
        Ok(Served {
            server,
            _folder: self.folder,
        })
    }
}

impl Served {
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn stop(&mut self) {
        self.server.stop();
    }
}

fn host_and_port(text: &str) -> anyhow::Result<(String, u16)> {
    match text.parse() {
        Ok(Address::Tcp { host, port }) if port > 0 => Ok((host, port)),
        _ => Err(anyhow!("--kafka-advertise {text}: write HOST:PORT")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_a_host_without_brackets_and_a_port_that_is_one() {
        let parsed = |text| host_and_port(text).expect("a host and a port");
        assert_eq!(parsed("log.example:9092"), ("log.example".to_owned(), 9092));
        assert_eq!(parsed("[::1]:9092"), ("::1".to_owned(), 9092));
        for text in ["log.example", ":9092", "log.example:0", "unix:/run/log"] {
            let refused = host_and_port(text).expect_err("refused").to_string();
            assert!(refused.contains("write HOST:PORT"), "{refused}");
        }
    }
}

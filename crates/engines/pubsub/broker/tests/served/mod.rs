//! A private cluster with a log and a broker, and a client that speaks the wire.

#![allow(dead_code, reason = "each test uses its part of it")]

use std::time::Duration;

use bytes::Bytes;
use dyno_postgres::{Cluster, Options as ClusterOptions};
use dyno_pubsub::record::{Records, encode};
use dyno_pubsub::wire::{
    Client, ClientOptions, Fetch, Fetched, Metadata, NewProducer, Produce, Produced, Rest, Rows,
    TopicIs,
};
use dyno_pubsub::{Connection, Dsn, Result, TopicOptions};
use dyno_pubsub_broker::{Broker, Options};
use tempfile::TempDir;

/// The lease of every broker of these tests.
pub const LEASE: Duration = Duration::from_millis(1500);

/// A cluster of its own, gone with the value.
pub struct Served {
    pub cluster: Cluster,
    folder: TempDir,
}

/// None, with a line that says so, where there is no PostgreSQL.
pub fn served(what: &str) -> Option<Served> {
    let folder = tempfile::Builder::new()
        .prefix("dyno-broker-")
        .tempdir_in("/tmp")
        .expect("a folder");
    let cluster = match Cluster::open(&folder.path().join("pg"), ClusterOptions::small()) {
        Ok(cluster) => cluster,
        Err(error) => {
            println!("skipped: {what}: {error}");
            return None;
        }
    };
    Connection::open(&cluster.dsn())
        .expect("a server")
        .install()
        .expect("the schema");
    Some(Served { cluster, folder })
}

impl Served {
    pub fn dsn(&self) -> Dsn {
        self.cluster.dsn()
    }

    pub fn connection(&self) -> Connection {
        Connection::open(&self.dsn()).expect("a server")
    }

    pub fn topic(&self, name: &str, partitions: u32) -> i32 {
        let options = TopicOptions {
            partitions,
            ..TopicOptions::default()
        };
        self.connection()
            .create_topic(name, &options)
            .expect("a topic")
    }

    /// The path of the socket of this name.
    pub fn socket(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Options of a broker that listens at the socket of this name.
    pub fn options(&self, socket: &str) -> Options {
        let mut options = Options::new(self.dsn(), dyno_net::Address::Unix(self.socket(socket)));
        options.lease = LEASE;
        options
    }

    /// A broker that holds `partitions` partitions.
    pub fn broker(&self, socket: &str, partitions: usize) -> Broker {
        let broker = Broker::start(self.options(socket)).expect("a broker");
        until(|| broker.partitions().len() == partitions);
        broker
    }
}

pub fn client(broker: &Broker) -> Client {
    let address = broker.addresses()[0].to_string();
    Client::connect(&address, &ClientOptions::default()).expect("a connection")
}

pub fn until(condition: impl Fn() -> bool) {
    for _ in 0..4000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it did not come about within twenty seconds");
}

pub fn topic_is(client: &Client, topic: &str) -> TopicIs {
    let topic = topic.to_owned();
    client.ask(&Metadata { topic }).expect("a topic")
}

pub fn new_producer(client: &Client) -> i64 {
    client.ask(&NewProducer {}).expect("an id").producer_id
}

/// Records with these values.
pub fn body(values: &[&[u8]]) -> Bytes {
    let mut body = Vec::new();
    for value in values {
        encode(&mut body, 1_700_000_000_000_000, None, &[], value).expect("a short record");
    }
    Bytes::from(body)
}

pub fn produce_of(
    topic_id: i32,
    partition: i32,
    producer_id: i64,
    first_sequence: i64,
    values: &[&[u8]],
) -> Produce {
    let body = body(values);
    Produce {
        topic_id,
        partition,
        producer_id,
        first_sequence,
        count: values.len() as u32,
        crc: dyno_checksum::crc32c(&body),
        codec: 0,
        body: Rest::one(body),
    }
}

pub fn fetch(
    client: &Client,
    topic_id: i32,
    partition: i32,
    offset: i64,
    wait_ms: u32,
) -> Result<Fetched> {
    client.ask(&Fetch {
        topic_id,
        partition,
        offset,
        most_bytes: 1 << 20,
        least_bytes: 1,
        wait_ms,
    })
}

/// (offset, value) of every record from `offset` on.
pub fn values(fetched: &Fetched, offset: i64) -> Vec<(i64, Vec<u8>)> {
    let mut found = Vec::new();
    for row in Rows::new(fetched.rows.bytes()) {
        let (head, body) = row.expect("a row");
        assert!(
            head.crc
                .is_none_or(|crc| crc == dyno_checksum::crc32c(&body))
        );
        for (at, record) in Records::new(body).enumerate() {
            let record = record.expect("a record");
            found.push((head.base_offset + at as i64, record.value.to_vec()));
        }
    }
    found.retain(|(at, _)| *at >= offset);
    found
}

/// Everything from `offset` to `end`, in as many fetches as it takes.
pub fn read_all(
    client: &Client,
    topic_id: i32,
    partition: i32,
    mut offset: i64,
    end: i64,
) -> Vec<(i64, Vec<u8>)> {
    let mut found = Vec::new();
    while offset < end {
        let fetched = fetch(client, topic_id, partition, offset, 5000).expect("rows");
        found.append(&mut values(&fetched, offset));
        offset = found.last().map_or(offset, |(at, _)| at + 1);
    }
    found
}

pub fn produced(client: &Client, produce: &Produce) -> Produced {
    client.ask(produce).expect("an acknowledgement")
}

/// The bytes of a request, for connections that no client of ours would make.
pub fn frame(message: &impl dyno_pubsub::wire::Message, verb: u8, request: u32) -> Vec<u8> {
    let head = dyno_net::Head {
        verb,
        flags: 0,
        request,
    };
    let mut out = Vec::new();
    dyno_net::encode(head, &message.parts().concat(), &mut out).expect("a short frame");
    out
}

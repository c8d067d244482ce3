//! A partitioned log with consumer groups, and queues, in PostgreSQL.
//!
//! It has topics with partitions whose offsets have no gaps, records packed into rows that fill a
//! page, producers whose repetitions append nothing, groups of consumers with leases and
//! generations, and queues with claims and dead letters. A record that is acknowledged is
//! committed, with the durability that the server has. Everything lies in the schema `pubsub`, and
//! its SQL functions serve any driver (`docs/pubsub.md`).
//!
//! Its log is not compacted by key. Clients of Kafka are served by `dyno-pubsub-kafka`. Calls
//! block, and only a [`Producer`] and the connections to brokers own threads.
//!
//! ```
//! use std::time::Duration;
//! use dyno_postgres::{Cluster, Options};
//! use dyno_pubsub::{
//!     Connection, Consumer, ConsumerOptions, Producer, ProducerOptions, Start, TopicOptions,
//! };
//!
//! # let home = tempfile::tempdir_in("/tmp")?;
//! # let directory = home.path().join("log");
//! // Or any server: Dsn::parse("postgres://...").
//! let cluster = Cluster::open(&directory, Options::small())?;
//! let dsn = cluster.dsn();
//! let mut server = Connection::open(&dsn)?;
//! server.install()?;
//! server.create_topic("orders", &TopicOptions { partitions: 4, ..TopicOptions::default() })?;
//!
//! let producer = Producer::open(&dsn, "orders", ProducerOptions::default())?;
//! let receipt = producer.send(Some(b"customer-7"), b"two chairs")?;
//! let place = receipt.wait()?; // committed
//! println!("partition {} offset {}", place.partition, place.offset);
//!
//! let options = ConsumerOptions { start: Start::Earliest, ..ConsumerOptions::default() };
//! let mut consumer = Consumer::open(&dsn, "orders", "billing", options)?;
//! let messages = consumer.poll(Duration::from_secs(5))?;
//! assert_eq!(&messages[0].value[..], b"two chairs");
//! consumer.commit()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append;
mod client;
mod connection;
mod epoch;
mod error;
mod fetch;
mod group;
mod group_admin;
mod key;
mod listening;
mod overview;
mod placement;
mod queue;
pub mod record;
mod retention;
pub mod schema;
mod staging;
mod start;
mod topic;
pub mod wire;

pub use append::Appended;
pub use client::{
    Acknowledge, Address, Change, Consumer, ConsumerOptions, FetchError, Joined, Message,
    PartitionEnds, Producer, ProducerOptions, Reader, Receipt, SealedBatch, SendQueues, Source,
};
pub use connection::Connection;
pub use epoch::{EPOCH_SHIFT, begins_epoch, epoch};
pub use error::{Code, Error, Result, Retry};
pub use fetch::{Fetched, StoredRow};
pub use group::{Assigned, Cursor, Lag, Membership, Ownership, WhenLost};
pub use group_admin::{Moved, Reset};
pub use key::Partitioner;
pub use overview::{GroupState, PartitionState, QueueState, RetentionState, TopicState};
pub use placement::{HOME, NamedCluster, Placement, Share};
pub use queue::{Claimed, DeadLetter, Next, Queue, QueueOptions, QueueStats};
pub use record::Record;
pub use retention::Maintained;
pub use staging::TransactionalProducer;
pub use start::Start;
pub use topic::{Partition, Position, Topic, TopicChanges, TopicOptions, TopicPartition};

pub use dyno_postgres::Dsn;

//! Kafka's protocol in front of a broker.
//!
//! What it is: a listener that clients of Kafka connect to. Their batches become records of the
//! log, which the library, the command line and SQL read like all others, and what these write
//! becomes batches. Groups of Kafka's clients are coordinated here, in memory; their offsets are in
//! the database, under a lease that fences off a server that was taken for dead.
//!
//! What it is not: a broker. It holds no records and no partitions, and asks the broker in its own
//! process for everything that has to do with them. Fetch sessions, compaction and Kafka's access
//! lists are not offered, and not advertised.
//!
//! A request is refused, and its connection ended, when it is not one of `wire::APIS` or not what
//! its API says. Everything that a client can make the server hold is bounded.

mod connection;
mod coordinator;
mod dispatch;
mod error;
mod records;
mod sequences;
mod server;
mod shared;
mod store;
mod transactions;
mod wire;

pub use records::is_batch;
pub use server::{KafkaError, KafkaServer, Options};
pub use wire::is_request;

//! Runs transactions of `dyno-txn-api` on an etcd cluster: replicated, and strictly serializable.
//!
//! Transactions are optimistic. A transaction reads at the revision of its first read, keeps its
//! writes to itself, and commits with one request of etcd, which compares the last change of
//! everything that it read with what it saw. That is slow: each read is a round trip, and each
//! commit a round of Raft with its syncs. Use it if data must survive the loss of a machine, and
//! some hundreds to some thousands of transactions per second are enough.
//!
//! - Procedures run in the client, because etcd cannot run them.
//! - A commit compares and writes at most as many keys as the cluster's `--max-txn-ops` allows,
//!   which is 128 by default. Larger ones are refused with [`dyno_txn_api::Code::TooLarge`].
//! - Connections are not encrypted. On a network that others can read, use a tunnel or a proxy.

mod catalogue;
mod client;
mod commit;
mod database;
mod fetch;
mod grpc;
mod layout;
mod proto;
mod transaction;

pub use database::{Etcd, EtcdOptions};

//! Transactions of `dyno-txn-api` on an etcd cluster: replicated, and strictly serializable.
//!
//! What it is: optimistic transactions. A transaction reads at the revision of its first read,
//! keeps its writes to itself, and commits by one request of etcd that compares the last change of
//! everything it read with what it saw. What it is not: fast. Each read is a round trip, each
//! commit a round of Raft with its syncs. Use it when data must outlive a machine and a few hundred
//! to a few thousand transactions a second are enough.
//!
//! - Procedures run in the client: etcd has no place for them.
//! - A commit compares and writes at most as many keys as the cluster's `--max-txn-ops` says (128
//!   unless raised); larger ones are refused with [`dyno_txn_api::Code::TooLarge`].
//! - Connections are plain; where others can listen, put a tunnel or a proxy between.

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

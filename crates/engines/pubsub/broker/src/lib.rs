//! A broker in front of a log in PostgreSQL.
//!
//! What it is: one appender for each partition that merges what all producers send, so that many
//! share one commit; the committed end of each partition in memory, for every consumer that keeps
//! up; leases on partitions with epochs, so that several brokers share a log and one takes over
//! from another. A record is acknowledged after its commit. All that it holds for clients is
//! bounded.
//!
//! What it is not: a place where records live. Whatever it knows it can lose; the log is the
//! database's, and a client may use that directly beside it.

mod append_queue;
mod appender;
mod backlog;
mod batch;
mod behind;
mod broker;
mod chunk;
mod commits;
mod control;
mod counters;
mod depths;
mod error;
mod fair;
mod front;
mod hosted;
mod leases;
mod ledger;
mod link;
mod memory;
mod merge;
mod metrics;
mod options;
mod partition;
mod tail;

pub use broker::Broker;
pub use error::BrokerError;
pub use options::Options;

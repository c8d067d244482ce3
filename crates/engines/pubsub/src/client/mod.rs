//! The client library: a producer that batches and retries, and a consumer in a group, over SQL or
//! a broker.

mod address;
mod broker;
mod chain;
mod consumer;
mod direct;
mod identity;
mod message;
mod named;
mod options;
mod owned;
mod pace;
mod placed;
mod producer;
mod reader;
mod receipt;
mod send_queues;
mod source;

pub use address::Address;
pub(crate) use chain::Chain;
pub use consumer::{Change, Consumer};
pub use message::Message;
pub use options::{Acknowledge, ConsumerOptions, ProducerOptions};
pub use producer::Producer;
pub use reader::Reader;
pub use receipt::Receipt;
pub use send_queues::{SealedBatch, SendQueues};
pub use source::{FetchError, Joined, PartitionEnds, Source};

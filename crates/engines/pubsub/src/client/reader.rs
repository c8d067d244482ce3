//! Reads by offsets, without a group. It is for callers that store the offset to continue from
//! together with the results of their processing.

use std::time::Duration;

use super::address::Address;
use super::broker;
use super::message::{self, Message};
use super::options::ConsumerOptions;
use super::source::{self, FetchError, PartitionEnds, Source};
use crate::error::{Error, Result};
use crate::topic::Position;
use crate::wire::ClientOptions;

/// Reads partitions of a topic from offsets that the caller gives. It does not join a group and
/// stores nothing in the log, so retention does not wait for it.
pub struct Reader {
    source: Box<dyn Source>,
    topic: String,
    partitions: Option<u32>,
}

impl Reader {
    /// Connects to a server or a broker and finds the topic. The options that belong to groups are
    /// ignored.
    ///
    /// # Errors
    /// `unknown-topic`, `not-installed`, `newer-schema`, `server-lost`, `denied`, `bad-argument`.
    pub fn open<A>(address: A, topic: &str, options: &ConsumerOptions) -> Result<Reader>
    where
        A: TryInto<Address>,
        Error: From<A::Error>,
    {
        let mut reader = Reader {
            source: source_of(address.try_into()?, topic, options)?,
            topic: topic.to_owned(),
            partitions: None,
        };
        reader.attached()?;
        Ok(reader)
    }

    /// How many partitions the topic has.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn attached(&mut self) -> Result<u32> {
        match self.partitions {
            Some(partitions) => Ok(partitions),
            None => Ok(*self
                .partitions
                .insert(self.source.attach(&self.topic)?.partitions)),
        }
    }

    /// The first and the last offset of each partition, in the order of their numbers.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn ends(&mut self) -> Result<Vec<PartitionEnds>> {
        let mut ends = self.source.ends()?;
        ends.sort_unstable_by_key(|ends| ends.partition);
        Ok(ends)
    }

    /// Reads records from these positions on. It returns `most_bytes` of rows in all at most, but
    /// always the first row, and comes back as soon as there are records, or empty when `wait` is
    /// over. The records of a partition come in the order of their offsets, without gaps.
    ///
    /// # Errors
    /// `offset-out-of-range` with the partition, for an offset that retention has removed or that
    /// was not written yet; `damaged`.
    pub fn read(
        &mut self,
        positions: &[Position],
        most_bytes: usize,
        wait: Duration,
    ) -> std::result::Result<Vec<Message>, FetchError> {
        let mut messages = Vec::new();
        for (partition, fetched) in self.source.fetch(positions, most_bytes, wait)? {
            let position = positions.iter().find(|at| at.partition == partition);
            let from = position.map_or(i64::MAX, |at| at.offset);
            for row in &fetched.rows {
                message::unpack(partition, row, from, &mut messages)?;
            }
        }
        Ok(messages)
    }
}

/// Opens the source of a topic at a server or a broker.
pub(super) fn source_of(
    address: Address,
    topic: &str,
    options: &ConsumerOptions,
) -> Result<Box<dyn Source>> {
    match address {
        Address::Server(dsn) => source::direct(&dsn, topic, options.idle_pause),
        Address::Broker(broker) => {
            let client = ClientOptions {
                token: options.token.clone().unwrap_or_default(),
                name: "dyno-consumer".to_owned(),
                tls: options.tls.clone(),
                ..ClientOptions::default()
            };
            broker::source(&broker, topic, client, options.idle_pause)
        }
    }
}

//! Reading by offsets, without a group: for whoever keeps the place where to go on beside what became of the records.

use std::time::Duration;

use super::address::Address;
use super::broker;
use super::message::{self, Message};
use super::options::ConsumerOptions;
use super::source::{self, FetchError, PartitionEnds, Source};
use crate::error::{Error, Result};
use crate::wire::ClientOptions;

/// Reads partitions of a topic from the offsets that it is told. It joins no group and stores nothing, so retention
/// does not wait for it.
pub struct Reader {
    source: Box<dyn Source>,
    topic: String,
    partitions: Option<u32>,
}

impl Reader {
    /// Connects to a server or a broker and finds the topic. Of the options those of a group do not matter.
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

    /// The topic's partitions.
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

    /// How far each partition reaches, by number.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn ends(&mut self) -> Result<Vec<PartitionEnds>> {
        let mut ends = self.source.ends()?;
        ends.sort_unstable_by_key(|ends| ends.partition);
        Ok(ends)
    }

    /// Records from these places (partition, offset) on, at most so many bytes of rows together but for the first
    /// row; returns as soon as there are some, with none when the wait is over. The records of a partition come in
    /// the order of their offsets, without gaps.
    ///
    /// # Errors
    /// `offset-out-of-range` for what retention took away or was not written yet, with its partition; `damaged`.
    pub fn read(
        &mut self,
        places: &[(i32, i64)],
        most_bytes: usize,
        wait: Duration,
    ) -> std::result::Result<Vec<Message>, FetchError> {
        let mut messages = Vec::new();
        for (partition, fetched) in self.source.fetch(places, most_bytes, wait)? {
            let place = places.iter().find(|(of, _)| *of == partition);
            let from = place.map_or(i64::MAX, |(_, offset)| *offset);
            for row in &fetched.rows {
                message::unpack(partition, row, from, &mut messages)?;
            }
        }
        Ok(messages)
    }
}

/// The source of a topic at an address.
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

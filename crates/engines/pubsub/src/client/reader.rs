//! Reads by offsets, without a group. It is for callers that store the offset to continue from
//! together with the results of their processing.

use std::time::Duration;

use super::address::Address;
use super::message::{self, Message};
use super::options::ConsumerOptions;
use super::source::{FetchError, PartitionEnds, Source};
use super::{broker, direct};
use crate::error::{Code, Error, Result};
use crate::start::Start;
use crate::topic::Position;
use crate::wire::ClientOptions;

/// How long a row that is known to be there is waited for.
const ROW_WAIT: Duration = Duration::from_secs(30);

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

    /// The offset at which `start` is in the partition whose ends these are.
    ///
    /// # Errors
    /// `offset-out-of-range` for an offset that retention has removed or that is beyond the end of
    /// the partition; those of the connection.
    pub fn offset_of(&mut self, start: Start, ends: &PartitionEnds) -> Result<i64> {
        match start {
            Start::Earliest => Ok(ends.first_offset),
            Start::Latest => Ok(ends.next_offset),
            Start::Offset(offset) => within(ends, offset, &self.topic),
            Start::TimeUs(time_us) => self.offset_at(ends, time_us),
        }
    }

    /// The offset of the first row that was appended at this time or later, or the end of the
    /// partition. Times grow with the offsets, so a search by halves finds it.
    fn offset_at(&mut self, ends: &PartitionEnds, time_us: i64) -> Result<i64> {
        let (mut low, mut high) = (ends.first_offset, ends.next_offset);
        while low < high {
            let offset = low + (high - low) / 2;
            let middle = Position {
                partition: ends.partition,
                offset,
            };
            // The least that can be read is one row.
            let read = self.read(&[middle], 1, ROW_WAIT);
            let row = read.map_err(|failed| failed.error)?;
            let Some(last) = row.last() else {
                let partition = ends.partition;
                let text = format_args!("offset {offset} of partition {partition} did not come");
                return Err(Error::new(Code::ServerLost, text));
            };
            match row.iter().find(|message| message.appended_at_us >= time_us) {
                None => low = last.offset + 1,
                Some(first) if first.offset > offset => return Ok(first.offset),
                Some(_) => high = offset,
            }
        }
        Ok(low)
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

/// Refuses an offset that a partition does not have and will not give next.
fn within(ends: &PartitionEnds, offset: i64, topic: &str) -> Result<i64> {
    let PartitionEnds {
        partition,
        first_offset,
        next_offset,
    } = *ends;
    if (first_offset..=next_offset).contains(&offset) {
        return Ok(offset);
    }
    let text = format_args!(
        "offset {offset} is not in partition {partition} of topic {topic:?}, whose records begin at \
         {first_offset} and end before {next_offset}"
    );
    Err(Error::new(Code::OffsetOutOfRange, text))
}

/// Opens the source of a topic at a server or a broker.
pub(super) fn source_of(
    address: Address,
    topic: &str,
    options: &ConsumerOptions,
) -> Result<Box<dyn Source>> {
    match address {
        Address::Server(dsn) => direct::open_source(&dsn, topic, options.idle_pause),
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

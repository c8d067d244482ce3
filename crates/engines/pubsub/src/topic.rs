//! Topics, their settings, and their partitions.

use std::fmt;

use dyno_postgres::postgres::{Client, Row};

use crate::error::{Code, Error, Result};
use crate::key::Partitioner;
use crate::record::Codec;
use crate::start::Start;

/// The settings of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicOptions {
    /// How many partitions, from 1 to 1000.
    pub partitions: u32,
    /// How clients compress bodies before they send them.
    pub compression: Codec,
    /// How old records become, in milliseconds, before they are dropped in steps of an eighth of
    /// this; `None` keeps them.
    pub retention_ms: Option<i64>,
    /// The oldest records of a partition are dropped while it is larger than this many bytes, in
    /// steps of about an eighth of it (256 KiB at least); `None` keeps them.
    pub retention_bytes: Option<i64>,
    /// The most offsets in one range, the unit in which records are dropped: 100 or more. Retention
    /// ends ranges earlier.
    pub range_records: i64,
    /// Whether nothing is dropped that a group has not committed.
    pub retain_for_groups: bool,
    /// How keys find their partitions. It cannot be changed later.
    pub partitioner: Partitioner,
}

impl Default for TopicOptions {
    fn default() -> Self {
        Self {
            partitions: 1,
            compression: Codec::None,
            retention_ms: None,
            retention_bytes: None,
            range_records: 1_000_000,
            retain_for_groups: false,
            partitioner: Partitioner::default(),
        }
    }
}

/// The settings of a topic to change; `None` leaves a setting as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicChanges {
    /// More partitions than before. Keys then belong to other partitions.
    pub partitions: Option<u32>,
    /// How records that are sent from now on are compressed.
    pub compression: Option<Codec>,
    /// The new [`TopicOptions::retention_ms`]; -1 keeps records for ever.
    pub retention_ms: Option<i64>,
    /// The new [`TopicOptions::retention_bytes`]; -1 keeps all records.
    pub retention_bytes: Option<i64>,
    /// The new size of ranges, which those that exist do not change to.
    pub range_records: Option<i64>,
    /// The new [`TopicOptions::retain_for_groups`].
    pub retain_for_groups: Option<bool>,
}

/// A topic as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its number; tables and functions are named by it.
    pub topic_id: i32,
    /// The name, unique on the server.
    pub name: String,
    /// The settings as they are now.
    pub options: TopicOptions,
    /// Which share of it this server has: 0 is the home of a topic that lies on several clusters,
    /// others have 1 and more; `None`: all of it is here. See
    /// [`Connection::placement`](crate::Connection::placement).
    pub share: Option<i32>,
}

/// Names one partition of one topic on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The number of the topic in the database.
    pub topic_id: i32,
    /// The number of the partition, from 0.
    pub partition: i32,
}

/// Writes `partition 3 of topic 7`, as messages name it.
impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition {} of topic {}", self.partition, self.topic_id)
    }
}

/// A place in the log of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The number of the partition, from 0.
    pub partition: i32,
    /// The number of a record in its partition, from 0. Where reading goes on, or what is committed
    /// ends, it is the next record, which need not be written yet.
    pub offset: i64,
}

/// A partition as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The number of the partition, from 0.
    pub partition: i32,
    /// The first offset that retention left.
    pub first_offset: i64,
    /// The offset that the next record gets.
    pub next_offset: i64,
    /// The epoch, which each broker raises when it takes the partition over.
    pub epoch: i64,
    /// The address of its broker; `None` if no broker holds its lease.
    pub broker_address: Option<String>,
}

const COLUMNS: &str = "topic_id, name, partitions, compression, retention_ms, retention_bytes, range_records, \
                       retain_for_groups, partitioner, share";

pub(crate) fn create(client: &mut Client, name: &str, options: &TopicOptions) -> Result<i32> {
    let partitions = partitions_number(options.partitions)?;
    client
        .query_one(
            "SELECT pubsub.create_topic($1, $2, $3, $4, $5, $6, $7, $8)",
            &[
                &name,
                &partitions,
                &options.compression.name(),
                &options.retention_ms,
                &options.retention_bytes,
                &options.range_records,
                &options.retain_for_groups,
                &options.partitioner.name(),
            ],
        )
        .map(|row| row.get(0))
        .map_err(Error::statement(format_args!("create topic {name:?}")))
}

pub(crate) fn alter(client: &mut Client, name: &str, changes: &TopicChanges) -> Result<()> {
    let partitions = changes.partitions.map(partitions_number).transpose()?;
    client
        .execute(
            "SELECT pubsub.alter_topic($1, $2, $3, $4, $5, $6, $7)",
            &[
                &name,
                &partitions,
                &changes.compression.map(Codec::name),
                &changes.retention_ms,
                &changes.retention_bytes,
                &changes.range_records,
                &changes.retain_for_groups,
            ],
        )
        .map(|_| ())
        .map_err(Error::statement(format_args!("change topic {name:?}")))
}

/// Drops a topic in steps, because one transaction has no room for the locks of a large topic. A
/// drop that was interrupted goes on when it is called again.
pub(crate) fn drop(client: &mut Client, name: &str) -> Result<()> {
    loop {
        let done = client
            .query_one("SELECT pubsub.drop_topic_step($1)", &[&name])
            .map_err(Error::statement(format_args!("drop topic {name:?}")))?;
        if done.get(0) {
            return Ok(());
        }
    }
}

pub(crate) fn find(client: &mut Client, name: &str) -> Result<Topic> {
    let query = format!("SELECT {COLUMNS} FROM pubsub.topics WHERE name = $1");
    let row = client
        .query_opt(&query, &[&name])
        .map_err(Error::statement(format_args!("find topic {name:?}")))?
        .ok_or_else(|| {
            Error::new(
                Code::UnknownTopic,
                format_args!("there is no topic {name:?}"),
            )
        })?;
    from_row(&row)
}

pub(crate) fn list(client: &mut Client) -> Result<Vec<Topic>> {
    let query = format!("SELECT {COLUMNS} FROM pubsub.topics ORDER BY name");
    let rows = client
        .query(&query, &[])
        .map_err(Error::statement("list topics"))?;
    rows.iter().map(from_row).collect()
}

pub(crate) fn partitions(client: &mut Client, topic_id: i32) -> Result<Vec<Partition>> {
    let rows = client
        .query(
            "SELECT p.partition, p.first_offset, p.next_offset, p.epoch, \
                    CASE WHEN b.lease_until > clock_timestamp() THEN p.broker_address END \
               FROM pubsub.partitions AS p LEFT JOIN pubsub.brokers AS b USING (broker) \
              WHERE p.topic_id = $1 ORDER BY p.partition",
            &[&topic_id],
        )
        .map_err(Error::statement(format_args!(
            "list the partitions of topic {topic_id}"
        )))?;
    let partitions = rows.iter().map(|row| Partition {
        partition: row.get(0),
        first_offset: row.get(1),
        next_offset: row.get(2),
        epoch: row.get(3),
        broker_address: row.get(4),
    });
    Ok(partitions.collect())
}

pub(crate) fn offset_of(
    client: &mut Client,
    topic: &str,
    partition: i32,
    start: Start,
) -> Result<i64> {
    client
        .query_one(
            "SELECT pubsub.offset_of_start($1, $2, $3)",
            &[&topic, &partition, &start.text()],
        )
        .map(|row| row.get(0))
        .map_err(Error::statement(format_args!(
            "find the offset of {} in partition {partition} of topic {topic:?}",
            start.text()
        )))
}

fn from_row(row: &Row) -> Result<Topic> {
    Ok(Topic {
        topic_id: row.get(0),
        name: row.get(1),
        options: TopicOptions {
            partitions: row.get::<_, i32>(2).unsigned_abs(),
            compression: Codec::named(row.get(3))?,
            retention_ms: row.get(4),
            retention_bytes: row.get(5),
            range_records: row.get(6),
            retain_for_groups: row.get(7),
            partitioner: Partitioner::named(row.get(8))?,
        },
        share: row.get(9),
    })
}

pub(crate) fn partitions_number(partitions: u32) -> Result<i32> {
    i32::try_from(partitions)
        .map_err(|_| Error::bad_argument(format_args!("{partitions} partitions are too many")))
}

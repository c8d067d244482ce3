//! All topics and all groups at once, with sizes: what somebody looks at, not what records pass through.

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::fetch::micros;
use crate::group::Lag;
use crate::queue::QueueStats;
use crate::topic::{Partition, Topic};

/// A topic with its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicState {
    /// Name and settings.
    pub topic: Topic,
    /// By number; those on this server.
    pub partitions: Vec<PartitionState>,
    /// At the home of a topic that lies on several clusters: the others, and their partitions. A broker does
    /// not tell.
    pub elsewhere: Vec<(String, Vec<i32>)>,
}

/// A partition with its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionState {
    /// Offsets and broker.
    pub partition: Partition,
    /// What it takes on the server's disk, indexes included.
    pub bytes: i64,
}

/// What of a partition is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its topic's name.
    pub topic: String,
    /// Its number.
    pub partition: i32,
    /// Tables that hold it, one of them empty often.
    pub ranges: i32,
    /// When its oldest record was appended, by the server's clock, microseconds since 1970; `None`: it is empty.
    pub oldest_at_us: Option<i64>,
}

/// A group with its cursors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// Its name.
    pub group: String,
    /// By number.
    pub partitions: Vec<Lag>,
}

impl GroupState {
    /// Records that are there and not committed, over all partitions.
    pub fn lag(&self) -> i64 {
        self.partitions.iter().map(|partition| partition.lag).sum()
    }
}

/// A queue with what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    /// Its name.
    pub queue: String,
    /// Counted now.
    pub stats: QueueStats,
}

/// A range that retention is about to drop has no size.
const SIZES: &str = "SELECT p.partition, coalesce(sum(pg_total_relation_size(to_regclass(format( \
                     'pubsub.log_%s_%s_%s', r.topic_id, r.partition, r.first_offset)))), 0)::bigint \
                     FROM pubsub.partitions AS p LEFT JOIN pubsub.ranges AS r USING (topic_id, partition) \
                     WHERE p.topic_id = $1 GROUP BY 1";

impl Connection {
    /// All topics by name.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn topic_states(&mut self) -> Result<Vec<TopicState>> {
        let topics = self.topics()?;
        topics
            .into_iter()
            .map(|topic| self.state_of(topic))
            .collect()
    }

    /// Since when the records of each partition are kept, on this server.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn kept(&mut self) -> Result<Vec<Kept>> {
        let query = "SELECT t.name, k.partition, k.ranges, k.oldest_at FROM pubsub.topics AS t, \
                     LATERAL pubsub.kept(t.name) AS k ORDER BY t.name, k.partition";
        let rows = self.client().query(query, &[]);
        let rows = rows.map_err(Error::statement("read what is kept"))?;
        let kept = rows.iter().map(|row| Kept {
            topic: row.get(0),
            partition: row.get(1),
            ranges: row.get(2),
            oldest_at_us: row.get::<_, Option<_>>(3).map(micros),
        });
        Ok(kept.collect())
    }

    fn state_of(&mut self, topic: Topic) -> Result<TopicState> {
        let rows = self
            .client()
            .query(SIZES, &[&topic.topic_id])
            .map_err(Error::statement(format_args!(
                "read the size of topic {:?}",
                topic.name
            )))?;
        let bytes = |partition: i32| {
            let row = rows.iter().find(|row| row.get::<_, i32>(0) == partition);
            row.map_or(0, |row| row.get(1))
        };
        let placement = match topic.share {
            Some(0) => self.placement(&topic)?,
            _ => None,
        };
        let shares = placement
            .into_iter()
            .flat_map(|placement| placement.elsewhere);
        let elsewhere = shares.map(|share| (share.cluster, share.partitions));
        let partitions = self.partitions(topic.topic_id)?.into_iter();
        let partitions = partitions.map(|partition| PartitionState {
            bytes: bytes(partition.partition),
            partition,
        });
        Ok(TopicState {
            partitions: partitions.collect(),
            elsewhere: elsewhere.collect(),
            topic,
        })
    }

    /// All groups of a topic, by name.
    ///
    /// # Errors
    /// `unknown-topic`.
    pub fn group_states(&mut self, topic: &str) -> Result<Vec<GroupState>> {
        let groups = self.groups(topic)?.into_iter();
        let states = groups.map(|group| {
            let partitions = self.group_lag(topic, &group)?;
            Ok(GroupState { group, partitions })
        });
        states.collect()
    }

    /// All queues by name.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn queue_states(&mut self) -> Result<Vec<QueueState>> {
        let query = "SELECT q.name, s.ready, s.delayed, s.claimed, s.dead, s.done, s.oldest_ms \
                     FROM pubsub.queues AS q, LATERAL pubsub.queue_stats(q.name) AS s ORDER BY q.name";
        let rows = self.client().query(query, &[]);
        let rows = rows.map_err(Error::statement("count the queues"))?;
        let states = rows.iter().map(|row| QueueState {
            queue: row.get(0),
            stats: QueueStats {
                ready: row.get(1),
                delayed: row.get(2),
                claimed: row.get(3),
                dead: row.get(4),
                done: row.get(5),
                oldest_ms: row.get(6),
            },
        });
        Ok(states.collect())
    }
}

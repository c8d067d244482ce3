//! All topics and all groups at once, with their sizes, for people who look at them. Nothing here
//! is on the path of records.

use std::collections::HashMap;

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::fetch::micros;
use crate::group::Lag;
use crate::queue::QueueStats;
use crate::topic::{Partition, Topic};

/// A topic with its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicState {
    /// The name and the settings.
    pub topic: Topic,
    /// The partitions on this server, ordered by number.
    pub partitions: Vec<PartitionState>,
    /// At the home of a topic that lies on several clusters: the other clusters with their
    /// partitions. A broker leaves this empty.
    pub elsewhere: Vec<(String, Vec<i32>)>,
}

/// A partition with its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionState {
    /// The offsets, and the broker that holds it.
    pub partition: Partition,
    /// Bytes on the server's disk, indexes included.
    pub bytes: i64,
}

/// What retention has left of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionState {
    /// The name of the topic.
    pub topic: String,
    /// The number of the partition.
    pub partition: i32,
    /// How many tables hold it. Often one of them is empty, because the next range is made ahead.
    pub ranges: i32,
    /// When its oldest record was appended, by the server's clock, microseconds since 1970; `None`:
    /// it is empty.
    pub oldest_at_us: Option<i64>,
}

/// A group with its cursors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// The name of the group.
    pub group: String,
    /// The cursors, ordered by the number of the partition.
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
    /// The name of the queue.
    pub queue: String,
    /// What it holds, counted by this very call.
    pub stats: QueueStats,
}

/// All partitions of all topics, with their sizes. A range that retention is about to drop has no
/// size.
const PARTITIONS: &str = "SELECT p.topic_id, p.partition, p.first_offset, p.next_offset, p.epoch, \
                     CASE WHEN b.lease_until > clock_timestamp() THEN p.broker_address END, s.bytes \
                     FROM pubsub.partitions AS p LEFT JOIN pubsub.brokers AS b USING (broker), LATERAL ( \
                         SELECT coalesce(sum(pg_total_relation_size(to_regclass(format( \
                                'pubsub.log_%s_%s_%s', r.topic_id, r.partition, r.first_offset)))), 0)::bigint AS bytes \
                           FROM pubsub.ranges AS r \
                          WHERE r.topic_id = p.topic_id AND r.partition = p.partition) AS s \
                     ORDER BY p.topic_id, p.partition";

impl Connection {
    /// All topics by name, with their shares on other clusters.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn topic_states(&mut self) -> Result<Vec<TopicState>> {
        let mut states = self.topic_states_here()?;
        for state in &mut states {
            if state.topic.share == Some(0)
                && let Some(placement) = self.placement(&state.topic)?
            {
                let shares = placement.elsewhere.into_iter();
                let elsewhere = shares.map(|share| (share.cluster, share.partitions));
                state.elsewhere = elsewhere.collect();
            }
        }
        Ok(states)
    }

    /// How far back the records of each partition on this server go.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn retention(&mut self) -> Result<Vec<RetentionState>> {
        let query = "SELECT t.name, k.partition, k.ranges, k.oldest_at FROM pubsub.topics AS t, \
                     LATERAL pubsub.kept(t.name) AS k ORDER BY t.name, k.partition";
        let rows = self.client().query(query, &[]);
        let rows = rows.map_err(Error::statement("read what is kept"))?;
        let states = rows.iter().map(|row| RetentionState {
            topic: row.get(0),
            partition: row.get(1),
            ranges: row.get(2),
            oldest_at_us: row.get::<_, Option<_>>(3).map(micros),
        });
        Ok(states.collect())
    }

    /// All topics by name, as this server has them, in two statements however many they are.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn topic_states_here(&mut self) -> Result<Vec<TopicState>> {
        let topics = self.topics()?;
        let rows = self.client().query(PARTITIONS, &[]);
        let rows = rows.map_err(Error::statement("read the partitions of all topics"))?;
        let mut partitions: HashMap<i32, Vec<PartitionState>> = HashMap::new();
        for row in &rows {
            let state = PartitionState {
                partition: Partition {
                    partition: row.get(1),
                    first_offset: row.get(2),
                    next_offset: row.get(3),
                    epoch: row.get(4),
                    broker_address: row.get(5),
                },
                bytes: row.get(6),
            };
            partitions.entry(row.get(0)).or_default().push(state);
        }
        let states = topics.into_iter().map(|topic| TopicState {
            partitions: partitions.remove(&topic.topic_id).unwrap_or_default(),
            elsewhere: Vec::new(),
            topic,
        });
        Ok(states.collect())
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

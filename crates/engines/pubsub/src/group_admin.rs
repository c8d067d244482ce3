//! Groups as a whole, for administrators: how far behind they are, resetting them, dropping them.

use crate::connection::Connection;
use crate::error::{Code, Error, Result};
use crate::group::Lag;
use crate::overview::GroupState;
use crate::start::Start;

/// Where a reset set a partition of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The number of the partition.
    pub partition: i32,
    /// The offset that the group had committed; `None` if it had none yet.
    pub was: Option<i64>,
    /// The offset at which the group goes on now.
    pub committed: i64,
}

/// Which partitions of a group are reset, and to which offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    /// Where the group goes on. An offset beyond the end of a partition is refused.
    pub to: Start,
    /// The only partition to reset; `None` stands for all of them.
    pub partition: Option<i32>,
    /// Whether to reset a group with living members, too. They lose their partitions, win them
    /// again under a new generation, and go on from the new offset.
    pub force: bool,
}

impl Connection {
    /// Owner, cursor and lag of each partition of a group. At the home of a topic that lies on
    /// several clusters these are the partitions of all clusters.
    ///
    /// # Errors
    /// `unknown-topic`, `unknown-group`; `server-lost` and the like when one of the clusters cannot
    /// be reached.
    pub fn group_lag(&mut self, topic: &str, group: &str) -> Result<Vec<Lag>> {
        let mut lags = self.group_lag_here(topic, group)?;
        self.at_each_share(topic, |share, _| {
            lags.extend(share.group_lag_here(topic, group)?);
            Ok(())
        })?;
        lags.sort_by_key(|lag| lag.partition);
        Ok(lags)
    }

    fn group_lag_here(&mut self, topic: &str, group: &str) -> Result<Vec<Lag>> {
        let rows = self
            .client()
            .query(
                "SELECT partition, member, generation, committed, next_offset, lag, redelivered, lost \
                   FROM pubsub.group_lag($1, $2)",
                &[&topic, &group],
            )
            .map_err(Error::statement(format_args!("read the lag of group {group:?} of topic {topic:?}")))?;
        let lags = rows.iter().map(|row| Lag {
            partition: row.get(0),
            member: row.get(1),
            generation: row.get(2),
            committed: row.get(3),
            next_offset: row.get(4),
            lag: row.get(5),
            redelivered: row.get(6),
            lost: row.get(7),
        });
        Ok(lags.collect())
    }

    /// All groups of all topics on this server, ordered by topic and group. This is one query,
    /// which reads no record.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn group_lags(&mut self) -> Result<Vec<(String, GroupState)>> {
        let rows = self
            .client()
            .query("SELECT * FROM pubsub.group_lags()", &[])
            .map_err(Error::statement("read the lag of all groups"))?;
        let mut all: Vec<(String, GroupState)> = Vec::new();
        for row in rows {
            let (topic, group): (String, String) = (row.get(0), row.get(1));
            if all
                .last()
                .is_none_or(|(t, state)| (t, &state.group) != (&topic, &group))
            {
                let partitions = Vec::new();
                all.push((topic, GroupState { group, partitions }));
            }
            let Some((_, state)) = all.last_mut() else {
                continue;
            };
            state.partitions.push(Lag {
                partition: row.get(2),
                member: row.get(3),
                generation: row.get(4),
                committed: row.get(5),
                next_offset: row.get(6),
                lag: row.get(7),
                redelivered: row.get(8),
                lost: row.get(9),
            });
        }
        Ok(all)
    }

    /// The groups of a topic, by name.
    ///
    /// # Errors
    /// `unknown-topic`.
    pub fn groups(&mut self, topic: &str) -> Result<Vec<String>> {
        let topic_id = self.topic(topic)?.topic_id;
        let rows = self
            .client()
            .query(
                "SELECT name FROM pubsub.groups WHERE topic_id = $1 ORDER BY name",
                &[&topic_id],
            )
            .map_err(Error::statement(format_args!(
                "list the groups of topic {topic:?}"
            )))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Resets a group to another offset, on all clusters that its topic lies on if this is the
    /// topic's home.
    ///
    /// # Errors
    /// `unknown-topic`, also for a partition that no cluster has; `unknown-group`, `group-in-use`,
    /// `offset-out-of-range`. When a cluster cannot be reached some partitions may be set already:
    /// call again.
    pub fn reset_group(&mut self, topic: &str, group: &str, reset: &Reset) -> Result<Vec<Moved>> {
        let home = self.topic(topic)?;
        let mut moved = Vec::new();
        // `reset_group_here` refuses a partition that its server does not have. On a topic that
        // lies on several clusters that says nothing, because another cluster may have it.
        if home.share != Some(0) || self.has_partition(home.topic_id, reset.partition)? {
            moved = self.reset_group_here(topic, group, reset)?;
        }
        self.at_each_share(topic, |share, _| {
            let local = share.topic(topic)?.topic_id;
            if share.has_partition(local, reset.partition)? {
                moved.extend(share.reset_group_here(topic, group, reset)?);
            }
            Ok(())
        })?;
        if let (Some(partition), true) = (reset.partition, moved.is_empty()) {
            let text = format_args!("topic {topic:?} has no partition {partition}");
            return Err(Error::new(Code::UnknownTopic, text));
        }
        moved.sort_by_key(|moved| moved.partition);
        Ok(moved)
    }

    /// Whether this server has the partition. `None` stands for all partitions of the topic, of
    /// which each server has some.
    fn has_partition(&mut self, topic_id: i32, partition: Option<i32>) -> Result<bool> {
        let Some(partition) = partition else {
            return Ok(true);
        };
        let all = self.partitions(topic_id)?;
        Ok(all.iter().any(|is| is.partition == partition))
    }

    fn reset_group_here(&mut self, topic: &str, group: &str, reset: &Reset) -> Result<Vec<Moved>> {
        let rows = self
            .client()
            .query(
                "SELECT partition, was, committed FROM pubsub.reset_group($1, $2, $3, $4, $5)",
                &[
                    &topic,
                    &group,
                    &reset.to.text(),
                    &reset.partition,
                    &reset.force,
                ],
            )
            .map_err(Error::statement(format_args!(
                "reset group {group:?} of topic {topic:?}"
            )))?;
        let moved = rows.iter().map(|row| Moved {
            partition: row.get(0),
            was: row.get(1),
            committed: row.get(2),
        });
        Ok(moved.collect())
    }

    /// Drops a group with its cursors, on all clusters that its topic lies on if this is the
    /// topic's home. With `force` a group with living members is dropped, too; they are told that
    /// the group does not exist.
    ///
    /// # Errors
    /// `unknown-topic`, `unknown-group` when no cluster has it, `group-in-use`. After an error some
    /// clusters may have dropped it already: call again.
    pub fn drop_group(&mut self, topic: &str, group: &str, force: bool) -> Result<()> {
        let mut dropped = false;
        // A drop that was interrupted has left the group on some of the clusters only. Those that
        // do not have it any more must not keep the next attempt from dropping the others.
        self.at_each_share(topic, |share, _| {
            match share.drop_group_here(topic, group, force) {
                Err(error) if error.kind() == Code::UnknownGroup => Ok(()),
                done => {
                    dropped |= done.is_ok();
                    done
                }
            }
        })?;
        match self.drop_group_here(topic, group, force) {
            Err(error) if error.kind() == Code::UnknownGroup && dropped => Ok(()),
            done => done,
        }
    }

    fn drop_group_here(&mut self, topic: &str, group: &str, force: bool) -> Result<()> {
        self.client()
            .execute(
                "SELECT pubsub.drop_group($1, $2, $3)",
                &[&topic, &group, &force],
            )
            .map(|_| ())
            .map_err(Error::statement(format_args!(
                "drop group {group:?} of topic {topic:?}"
            )))
    }
}

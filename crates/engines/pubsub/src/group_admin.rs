//! Groups as a whole, for those that look after them: how far behind they are, setting them to
//! another place, dropping them.

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::group::Lag;
use crate::overview::GroupState;
use crate::start::Start;

/// Where a reset set a partition of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The partition.
    pub partition: i32,
    /// Where the group stood; `None`: nowhere yet.
    pub was: Option<i64>,
    /// Where it stands now.
    pub committed: i64,
}

/// What is to be done to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    /// The place. Beyond the end of a partition it is refused.
    pub to: Start,
    /// One partition alone; all of them without.
    pub partition: Option<i32>,
    /// Also where members live: they are fenced off, and go on from the new place.
    pub force: bool,
}

impl Connection {
    /// Owner, cursor and lag of each partition of a group; asked of the home of a topic that lies
    /// on several clusters, those on the others too.
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

    /// All groups of all topics on this server, by topic and group: one query, which reads no
    /// record.
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

    /// Sets a group to another place, on all clusters that its topic lies on when this is the
    /// topic's home.
    ///
    /// # Errors
    /// `unknown-topic`, `unknown-group`, `group-in-use`, `offset-out-of-range`. When a cluster
    /// cannot be reached some partitions may be set already: call again.
    pub fn reset_group(&mut self, topic: &str, group: &str, reset: &Reset) -> Result<Vec<Moved>> {
        let mut moved = Vec::new();
        // Where the partition is on another cluster, this one has nothing to set.
        let elsewhere = match (reset.partition, self.topic(topic)?) {
            (Some(partition), topic) if topic.share == Some(0) => !self
                .partitions(topic.topic_id)?
                .iter()
                .any(|is| is.partition == partition),
            _ => false,
        };
        if !elsewhere {
            moved = self.reset_group_here(topic, group, reset)?;
        }
        self.at_each_share(topic, |share, _| {
            let local = share.topic(topic)?.topic_id;
            let has = |partition| {
                let mut all = share.partitions(local).into_iter().flatten();
                all.any(|is| is.partition == partition)
            };
            if reset.partition.is_none_or(has) {
                moved.extend(share.reset_group_here(topic, group, reset)?);
            }
            Ok(())
        })?;
        moved.sort_by_key(|moved| moved.partition);
        Ok(moved)
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

    /// Drops a group with its cursors, on all clusters that its topic lies on when this is the
    /// topic's home. With `force` also where members live, which are told that there is no such
    /// group.
    ///
    /// # Errors
    /// `unknown-topic`, `unknown-group`, `group-in-use`.
    pub fn drop_group(&mut self, topic: &str, group: &str, force: bool) -> Result<()> {
        self.at_each_share(topic, |share, _| share.drop_group_here(topic, group, force))?;
        self.drop_group_here(topic, group, force)
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

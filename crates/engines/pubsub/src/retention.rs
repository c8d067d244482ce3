//! Retention, for a caller that applies it now and then: what `pubsub.maintain` does. And the
//! deletion of records by hand.

use crate::connection::Connection;
use crate::error::{Code, Error, Result};

/// What maintenance did to a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintained {
    /// The name of the topic.
    pub topic: String,
    /// The number of the partition.
    pub partition: i32,
    /// The first offset that is left after a range was dropped; `None` if a reader held the range,
    /// which is dropped by a later call.
    pub first_offset: Option<i64>,
}

impl Connection {
    /// Drops the ranges that retention does not keep, and forgets producers that were silent for
    /// seven days. Each partition is a transaction of its own, in which appends to the partition
    /// wait for a reader that holds the range, for at most 200 ms. Call it about once a minute, as
    /// the owner of the tables.
    ///
    /// # Errors
    /// Whatever the server says; partitions before the failure are done.
    pub fn maintain(&mut self) -> Result<Vec<Maintained>> {
        let failed = || Error::statement("apply retention");
        // Each partition is a statement of its own, so that a lock on one of them is not held while
        // the others are looked at, and a failure does not undo what was dropped before.
        let partitions = self
            .client()
            .query("SELECT topic, partition FROM pubsub.maintained()", &[])
            .map_err(failed())?;
        let mut maintained = Vec::new();
        for row in partitions {
            let (topic, partition): (String, i32) = (row.get(0), row.get(1));
            maintained.extend(self.maintain_partition(&topic, partition)?);
        }
        self.client()
            .execute("SELECT pubsub.forget_producers()", &[])
            .map_err(failed())?;
        Ok(maintained)
    }

    /// Deletes the records of a partition before an offset, or all that are there if it is `None`,
    /// and returns the first offset that is left. Readers are refused smaller offsets from then on;
    /// one that was reading there may still be given the rest of its range. Appends wait for a
    /// reader that holds a range, for at most 200 ms.
    ///
    /// # Errors
    /// `unknown-topic`; `offset-out-of-range` for an offset beyond the end of the partition.
    pub fn delete_records(
        &mut self,
        topic_id: i32,
        partition: i32,
        before: Option<i64>,
    ) -> Result<i64> {
        let query = "SELECT pubsub.delete_records(t.name, $2, $3) FROM pubsub.topics AS t WHERE t.topic_id = $1";
        let failed = Error::statement(format!(
            "delete records of partition {partition} of topic {topic_id}"
        ));
        let row = self
            .client()
            .query_opt(query, &[&topic_id, &partition, &before]);
        row.map_err(failed)?.map(|row| row.get(0)).ok_or_else(|| {
            let text = format_args!("there is no topic {topic_id}");
            Error::new(Code::UnknownTopic, text)
        })
    }

    /// Applies retention to one partition. If the topic was dropped meanwhile nothing is done.
    fn maintain_partition(&mut self, topic: &str, partition: i32) -> Result<Vec<Maintained>> {
        let statement = "SELECT first_offset FROM pubsub.maintain_partition($1, $2)";
        let rows = self.client().query(statement, &[&topic, &partition]);
        let rows = match rows.map_err(Error::statement(format_args!(
            "apply retention to partition {partition} of topic {topic:?}"
        ))) {
            Err(error) if error.kind() == Code::UnknownTopic => return Ok(Vec::new()),
            rows => rows?,
        };
        let maintained = rows.iter().map(|row| Maintained {
            topic: topic.to_owned(),
            partition,
            first_offset: row.get(0),
        });
        Ok(maintained.collect())
    }
}

//! Retention, for a caller that applies it now and then: what `pubsub.maintain` does.

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

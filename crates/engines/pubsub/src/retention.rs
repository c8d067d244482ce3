//! Retention: what `pubsub.maintain` does, for a caller that runs it now and then.

use crate::connection::Connection;
use crate::error::{Code, Error, Result};

/// What maintenance did to a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintained {
    /// The topic's name.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Where the log begins after a range was dropped; `None`: a reader was in the way, call again
    /// later.
    pub first_offset: Option<i64>,
}

impl Connection {
    /// Drops the ranges that retention does not keep, and forgets producers that were silent for
    /// seven days. Each partition is a transaction of its own, in which appends to it wait at most
    /// 200 ms for a reader that is in the way. Call it every minute or so, as the owner of the
    /// tables.
    ///
    /// # Errors
    /// Whatever the server says; partitions before the failure are done.
    pub fn maintain(&mut self) -> Result<Vec<Maintained>> {
        let failed = || Error::statement("apply retention");
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

    /// The same for one partition; nothing is done where the topic was dropped meanwhile.
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

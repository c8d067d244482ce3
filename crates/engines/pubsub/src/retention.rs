//! Retention: what `pubsub.maintain` does, for whoever calls it now and then.

use crate::connection::Connection;
use crate::error::{Error, Result};

/// What maintenance did to a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintained {
    /// The topic's name.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Where the log begins after a range was dropped; `None`: a reader was in the way, call again later.
    pub first_offset: Option<i64>,
}

impl Connection {
    /// Drops the ranges that retention does not keep, and forgets producers that were silent for seven days.
    /// Appends wait for it at most 200 ms for each partition. Call it every minute or so.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn maintain(&mut self) -> Result<Vec<Maintained>> {
        let rows = self
            .client()
            .query(
                "SELECT topic, partition, first_offset FROM pubsub.maintain()",
                &[],
            )
            .map_err(Error::statement("apply retention"))?;
        let maintained = rows.iter().map(|row| Maintained {
            topic: row.get(0),
            partition: row.get(1),
            first_offset: row.get(2),
        });
        Ok(maintained.collect())
    }
}

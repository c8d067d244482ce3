//! What a session listens to: it is told of appends instead of looking for them.

use std::time::Duration;

use dyno_postgres::postgres::Client;
use dyno_postgres::postgres::fallible_iterator::FallibleIterator;

use crate::error::{Error, Result};

/// The partitions that a session listens to.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    topic_id: i32,
    partitions: Vec<i32>,
}

impl Heard {
    /// Listens to these partitions, and to no others any more.
    pub(crate) fn listen(
        &mut self,
        client: &mut Client,
        topic_id: i32,
        partitions: Vec<i32>,
    ) -> Result<()> {
        if (self.topic_id, &self.partitions) == (topic_id, &partitions) {
            return Ok(());
        }
        // Nothing is known of what is listened to when the statement fails.
        self.partitions.clear();
        let mut statement = "UNLISTEN *".to_owned();
        for partition in &partitions {
            statement += &format!("; LISTEN pubsub_{topic_id}_{partition}");
        }
        client
            .batch_execute(&statement)
            .map_err(Error::statement(format_args!("listen to topic {topic_id}")))?;
        *self = Self {
            topic_id,
            partitions,
        };
        Ok(())
    }

    /// Waits until the session is told something, at most so long; whether it was. What it was told
    /// before counts too: then the caller looks once more than it had to. A session that listens to
    /// nothing says yes at once.
    pub(crate) fn wait(&self, client: &mut Client, wait: Duration) -> Result<bool> {
        if self.partitions.is_empty() {
            return Ok(true);
        }
        let failed = || Error::statement("wait to be told of an append");
        let mut notifications = client.notifications();
        let told = notifications.timeout_iter(wait).next().map_err(failed())?;
        if told.is_some() {
            // Those that came together with it are of what is about to be read.
            let mut rest = notifications.iter();
            while rest.next().map_err(failed())?.is_some() {}
        }
        Ok(told.is_some())
    }
}

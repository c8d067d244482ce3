//! The notifications that a session listens to, so that it is told of appends instead of polling
//! for them.

use std::time::Duration;

use dyno_postgres::postgres::Client;
use dyno_postgres::postgres::fallible_iterator::FallibleIterator;

use crate::error::{Error, Result};

/// The partitions that a session listens to.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    topic_id: i32,
    partitions: Vec<i32>,
}

impl Listening {
    /// Listens to these partitions, and stops listening to all others.
    pub(crate) fn listen(
        &mut self,
        client: &mut Client,
        topic_id: i32,
        partitions: Vec<i32>,
    ) -> Result<()> {
        if (self.topic_id, &self.partitions) == (topic_id, &partitions) {
            return Ok(());
        }
        // The session is in an unknown state if the statement fails, so nothing is assumed to be
        // listened to until it succeeds.
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

    /// Waits until the session is told of an append, for at most `wait`, and returns whether it
    /// was. A notification that came before counts, too; then the caller reads once more than it
    /// had to. A session that listens to nothing returns true at once.
    pub(crate) fn wait(&self, client: &mut Client, wait: Duration) -> Result<bool> {
        if self.partitions.is_empty() {
            return Ok(true);
        }
        let failed = || Error::statement("wait to be told of an append");
        let mut notifications = client.notifications();
        let notification = notifications.timeout_iter(wait).next().map_err(failed())?;
        if notification.is_some() {
            // The others that came with it are about appends that the caller is about to read. If
            // they stayed they would end its next wait at once, for nothing.
            let mut rest = notifications.iter();
            while rest.next().map_err(failed())?.is_some() {}
        }
        Ok(notification.is_some())
    }
}

//! What is in a queue: counts, dead letters, and deleting either.

use std::time::SystemTime;

use dyno_postgres::postgres::types::Type;

use super::Queue;
use crate::error::{Error, Result};

/// A message that was claimed as often as the queue allows, and is kept aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The number that it had as a message.
    pub message_id: i64,
    /// How often it was claimed.
    pub attempts: i32,
    /// Why the last worker gave it back; `None` when it did not come back.
    pub reason: Option<String>,
    /// When it was sent, by the server's clock.
    pub sent_at: SystemTime,
    /// When it became a dead letter.
    pub died_at: SystemTime,
    /// What the sender put in.
    pub payload: Vec<u8>,
}

/// What is in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueStats {
    /// Messages that can be claimed.
    pub ready: i64,
    /// Messages that will be visible later.
    pub delayed: i64,
    /// Messages that a worker holds.
    pub claimed: i64,
    /// Messages that were claimed too often, and are kept aside as dead letters.
    pub dead: i64,
    /// Messages that were acknowledged and are kept.
    pub done: i64,
    /// Age of the oldest message that is not done, in milliseconds.
    pub oldest_ms: Option<i64>,
}

impl Queue {
    /// Returns up to `most` of the oldest dead letters, which stay where they are.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn dead_letters(&mut self, most: u32) -> Result<Vec<DeadLetter>> {
        let query = "SELECT message_id, attempts, reason, sent_at, died_at, payload \
                     FROM pubsub.queue_dead($1) LIMIT $2";
        let rows = self
            .connection
            .client()
            .query(query, &[&self.name, &i64::from(most)])
            .map_err(Error::statement(format_args!(
                "read the dead letters of queue {:?}",
                self.name
            )))?;
        let letters = rows.iter().map(|row| DeadLetter {
            message_id: row.get(0),
            attempts: row.get(1),
            reason: row.get(2),
            sent_at: row.get(3),
            died_at: row.get(4),
            payload: row.get(5),
        });
        Ok(letters.collect())
    }

    /// Makes up to `most` of the oldest dead letters messages again, and returns how many it made.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn redrive(&mut self, most: u32) -> Result<i64> {
        let statement = self.statement(
            "redrive",
            "SELECT pubsub.queue_redrive_{q}($1)",
            &[Type::INT4],
        )?;
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        self.connection
            .client()
            .query_one(&statement, &[&most])
            .map(|row| row.get(0))
            .map_err(Error::statement(format_args!(
                "redrive queue {:?}",
                self.name
            )))
    }

    /// Counts what is in the queue.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn stats(&mut self) -> Result<QueueStats> {
        let query =
            "SELECT ready, delayed, claimed, dead, done, oldest_ms FROM pubsub.queue_stats($1)";
        let row = self
            .connection
            .client()
            .query_one(query, &[&self.name])
            .map_err(Error::statement(format_args!(
                "count queue {:?}",
                self.name
            )))?;
        Ok(QueueStats {
            ready: row.get(0),
            delayed: row.get(1),
            claimed: row.get(2),
            dead: row.get(3),
            done: row.get(4),
            oldest_ms: row.get(5),
        })
    }

    /// Deletes the messages that no worker has claimed, delayed ones too, and returns how many.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn purge(&mut self) -> Result<i64> {
        self.delete("purge", "SELECT pubsub.queue_purge($1)")
    }

    /// Deletes the dead letters and returns how many.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn forget_dead(&mut self) -> Result<i64> {
        let query = "SELECT pubsub.queue_forget_dead($1)";
        self.delete("delete the dead letters of", query)
    }

    fn delete(&mut self, what: &str, query: &str) -> Result<i64> {
        let row = self.connection.client().query_one(query, &[&self.name]);
        row.map(|row| row.get(0))
            .map_err(Error::statement(format_args!(
                "{what} queue {:?}",
                self.name
            )))
    }
}

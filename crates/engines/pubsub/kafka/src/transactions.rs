//! What the database does about transactions of producers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dyno_pubsub::record::Batch;
use dyno_pubsub::{Error, Result, TopicPartition, TransactionalProducer};

use crate::error::ErrorCode;
use crate::store::{Columns, Committed, Store};

/// The id and epoch that a producer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenProducer {
    pub producer_id: i64,
    pub epoch: i16,
}

impl Store {
    /// Begins a producer, or begins it anew: what its predecessor has not committed is thrown away,
    /// and the predecessor is refused from now on. `had` is the id and epoch of one that goes on
    /// after an error.
    pub fn init_producer(
        &self,
        transactional_id: &str,
        timeout: Duration,
        had: Option<GivenProducer>,
    ) -> Result<std::result::Result<GivenProducer, ErrorCode>> {
        let timeout_ms = timeout.as_millis() as i64;
        let had_id = had.map_or(-1, |had| had.producer_id);
        let had_epoch = had.map_or(-1, |had| i32::from(had.epoch));
        let query = "SELECT error, producer_id, producer_epoch \
                       FROM pubsub.kafka_init_producer($1, $2, $3, $4)";
        self.run(|session| {
            let row = session.client().query_one(
                query,
                &[&transactional_id, &timeout_ms, &had_id, &had_epoch],
            );
            let row = row.map_err(Error::statement(format_args!(
                "begin producer {transactional_id:?}"
            )))?;
            Ok(code(row.get(0)).map(|()| GivenProducer {
                producer_id: row.get(1),
                epoch: i16::try_from(row.get::<_, i32>(2)).unwrap_or_default(),
            }))
        })
    }

    /// Begins a transaction, or goes on with the one that is under way.
    pub fn begin_transaction(
        &self,
        producer: TransactionalProducer<'_>,
    ) -> Result<std::result::Result<(), ErrorCode>> {
        let query = "SELECT pubsub.kafka_begin($1, $2, $3)";
        self.run(|session| {
            let returned = session.ask_for_producer(query, producer, &[], "begin a transaction")?;
            Ok(code(returned))
        })
    }

    /// Keeps a batch aside until its transaction is committed.
    pub fn stage(
        &self,
        producer: TransactionalProducer<'_>,
        key: TopicPartition,
        batch: &mut Batch,
    ) -> Result<std::result::Result<(), ErrorCode>> {
        self.run(|session| Ok(code(session.stage(producer, key, batch)?)))
    }

    /// Keeps offsets of a group aside until the transaction is committed.
    pub fn stage_offsets(
        &self,
        producer: TransactionalProducer<'_>,
        group: &str,
        commits: &BTreeMap<TopicPartition, Committed>,
    ) -> Result<std::result::Result<(), ErrorCode>> {
        let columns = Columns::from_commits(commits);
        let query = "SELECT pubsub.kafka_stage_offsets($1, $2, $3, $4, $5, $6, $7, $8)";
        self.run(|session| {
            let action = format_args!("keep offsets of group {group:?} aside");
            let Columns {
                topics,
                partitions,
                offsets,
                metadata,
            } = &columns;
            let kept = session.ask_for_producer(
                query,
                producer,
                &[&group, topics, partitions, offsets, metadata],
                action,
            );
            Ok(code(kept?))
        })
    }

    /// Ends a transaction. If it commits, its records are in the log and its offsets are stored
    /// afterwards, all of them.
    pub fn end_transaction(
        &self,
        producer: TransactionalProducer<'_>,
        commits: bool,
    ) -> Result<std::result::Result<(), ErrorCode>> {
        let query = "SELECT pubsub.kafka_end($1, $2, $3, $4)";
        // A repeated end is answered as the first one, so an outcome that got lost is asked for.
        self.run(|session| {
            let ended = session.ask_for_producer(query, producer, &[&commits], "end a transaction");
            Ok(code(ended?))
        })
    }

    /// Ends transactions that take longer than their producers said, and returns how many.
    pub fn expire_transactions(&self) -> Result<i32> {
        self.run(|session| {
            let row = session
                .client()
                .query_one("SELECT pubsub.kafka_expire_transactions()", &[]);
            let row = row.map_err(Error::statement("end transactions that take too long"))?;
            Ok(row.get(0))
        })
    }

    /// The partitions of which a transaction that is under way will store offsets of a group.
    pub fn staged_offsets(&self, group: &str) -> Result<BTreeSet<(String, i32)>> {
        let query = "SELECT DISTINCT t.name, o.partition FROM pubsub.kafka_staged_offsets AS o \
                       JOIN pubsub.topics AS t USING (topic_id) WHERE o.group_name = $1";
        let rows = self.run(|session| {
            let rows = session.client().query(query, &[&group]);
            rows.map_err(Error::statement(format_args!(
                "read what transactions will store for group {group:?}"
            )))
        })?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}

/// An error of the protocol as the database's functions return it.
fn code(returned: i32) -> std::result::Result<(), ErrorCode> {
    match i16::try_from(returned).unwrap_or(ErrorCode::UNKNOWN_SERVER_ERROR.0) {
        0 => Ok(()),
        code => Err(ErrorCode(code)),
    }
}

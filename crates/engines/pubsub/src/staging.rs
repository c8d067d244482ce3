//! Batches of Kafka's transactional producers, which are kept aside until their producer commits.

use std::fmt::Display;

use dyno_postgres::postgres::types::ToSql;

use crate::append::row_parameters;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::record::Batch;
use crate::topic::TopicPartition;

/// The most bytes of one transaction, which are appended in one transaction of the server.
const TRANSACTION_BYTES_MAX: i64 = 256 << 20;

/// A producer that has transactions, as each of its requests names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionalProducer<'a> {
    /// The name that its program chose.
    pub transactional_id: &'a str,
    /// Its id, which the name has for as long as it is used.
    pub producer_id: i64,
    /// Its epoch, which grows when a process takes over from another one.
    pub epoch: i16,
}

impl Connection {
    /// Calls a function of the database whose first parameters name a producer, and `more` are the
    /// others. Returns an error of Kafka's protocol, or 0.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn ask_for_producer(
        &mut self,
        query: &'static str,
        producer: TransactionalProducer<'_>,
        more: &[&(dyn ToSql + Sync)],
        action: impl Display,
    ) -> Result<i32> {
        let statement = self.prepared(query)?;
        let epoch = i32::from(producer.epoch);
        let named: [&(dyn ToSql + Sync); 3] =
            [&producer.transactional_id, &producer.producer_id, &epoch];
        // The end of a transaction is an acknowledgement. What is only kept aside does not wait for
        // standbys, so it never fails by this.
        self.acknowledged(|client, _| {
            let row = client.query_one(&statement, &[&named, more].concat());
            Ok(row.map_err(Error::statement(action))?.get(0))
        })
    }

    /// Keeps a batch of one producer aside. Returns an error of Kafka's protocol, or 0. A batch
    /// that comes again is kept once.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn stage(
        &mut self,
        producer: TransactionalProducer<'_>,
        key: TopicPartition,
        batch: &mut Batch,
    ) -> Result<i32> {
        batch.seal()?;
        let ends = batch
            .first_sequences
            .first()
            .zip(batch.last_sequences.first());
        let (Some((first, last)), 1) = (ends, batch.producers.len()) else {
            return Err(Error::bad_argument(
                "a batch of a transaction has one producer",
            ));
        };
        let query = "SELECT pubsub.kafka_stage($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, \
                     $13, $14, $15, $16, $17, $18, $19)";
        let place: [&(dyn ToSql + Sync); 5] = [
            &TRANSACTION_BYTES_MAX,
            &key.topic_id,
            &key.partition,
            first,
            last,
        ];
        let bodies = batch.joined();
        let more = [&place[..], &row_parameters(batch, &bodies)].concat();
        let action = format_args!("keep a batch for {key} aside");
        self.ask_for_producer(query, producer, &more, action)
    }
}

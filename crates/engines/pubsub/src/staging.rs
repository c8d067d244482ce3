//! Batches of Kafka's transactional producers, which are kept aside until their producer commits.

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
        let statement = self.prepared(query)?;
        let row = self.client().query_one(
            &statement,
            &[
                &producer.transactional_id,
                &producer.producer_id,
                &i32::from(producer.epoch),
                &TRANSACTION_BYTES_MAX,
                &key.topic_id,
                &key.partition,
                first,
                last,
                &batch.row_relatives,
                &batch.counts,
                &batch.first_times,
                &batch.last_times,
                &batch.run_from,
                &batch.run_to,
                &batch.run_values,
                &batch.flags,
                &batch.crcs,
                &batch.body_ends,
                &batch.joined(),
            ],
        );
        let row = row.map_err(Error::statement(format_args!(
            "keep a batch for {key} aside"
        )))?;
        Ok(row.get(0))
    }
}

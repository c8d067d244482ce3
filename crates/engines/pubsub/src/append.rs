//! One append to one partition: one statement, one round trip, one commit.

use std::collections::HashMap;

use dyno_postgres::postgres::types::{ToSql, Type};
use dyno_postgres::postgres::{GenericClient, Statement};

use crate::error::{Code, Error, Result};
use crate::fetch::micros;
use crate::record::Batch;

/// What an append did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// All of it is in the log.
    New {
        /// The offset of the batch's first record.
        base_offset: i64,
        /// When, by the server's clock, microseconds since 1970.
        appended_at_us: i64,
    },
    /// Nothing was appended, because some of it is there already. Send the rest again without that.
    Known {
        /// For each producer of the batch, in its order: the offset of its first record, if it is there
        /// already; -1 when it is, but so long ago that the offset is not known.
        offsets: Vec<Option<i64>>,
    },
}

/// The prepared statements of one connection.
#[derive(Default)]
pub(crate) struct Appends {
    statements: HashMap<(i32, i32), Statement>,
}

impl Appends {
    /// Appends a batch. `epoch` is the broker's; 0 in direct mode.
    pub(crate) fn append(
        &mut self,
        client: &mut impl GenericClient,
        (topic_id, partition): (i32, i32),
        epoch: i64,
        batch: &mut Batch,
    ) -> Result<Appended> {
        if batch.records() == 0 {
            return Err(Error::bad_argument("an empty batch cannot be appended"));
        }
        let failed = |error| refused(error, topic_id, partition);
        batch.seal()?;
        let statement = match self.statements.get(&(topic_id, partition)) {
            Some(statement) => statement.clone(),
            None => {
                let made = client
                    .prepare_typed(&query(topic_id, partition), &TYPES)
                    .map_err(failed)?;
                self.statements.insert((topic_id, partition), made.clone());
                made
            }
        };
        let bodies = batch.joined();
        let parameters: [&(dyn ToSql + Sync); 16] = [
            &epoch,
            &batch.producers,
            &batch.first_sequences,
            &batch.last_sequences,
            &batch.relatives,
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
            &bodies,
        ];
        let row = client.query_one(&statement, &parameters).map_err(failed)?;
        match row.get::<_, Option<i64>>(0) {
            Some(base_offset) => Ok(Appended::New {
                base_offset,
                appended_at_us: micros(row.get(2)),
            }),
            None => Ok(Appended::Known {
                offsets: row
                    .get::<_, Option<Vec<Option<i64>>>>(1)
                    .unwrap_or_default(),
            }),
        }
    }
}

const TYPES: [Type; 16] = [
    Type::INT8,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT4_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT4_ARRAY,
    Type::INT4_ARRAY,
    Type::INT8_ARRAY,
    Type::INT2_ARRAY,
    Type::INT4_ARRAY,
    Type::INT4_ARRAY,
    Type::BYTEA,
];

fn query(topic_id: i32, partition: i32) -> String {
    format!(
        "SELECT base_offset, known, appended_at FROM pubsub.append_{topic_id}_{partition}\
         ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
    )
}

/// A partition whose function is gone, or whose counter is, went with its topic.
fn refused(error: dyno_postgres::postgres::Error, topic_id: i32, partition: i32) -> Error {
    if error.code().is_some_and(|state| state.code() == "42883") {
        let text = format_args!(
            "there is no topic {topic_id} with partition {partition}, or the schema is not installed"
        );
        return Error::new(Code::UnknownTopic, text);
    }
    Error::statement(format_args!(
        "append to partition {partition} of topic {topic_id}"
    ))(error)
}

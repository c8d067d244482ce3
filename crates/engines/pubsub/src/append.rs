//! One append to one partition: one statement, one round trip, one commit.

use std::collections::HashMap;

use dyno_postgres::postgres::types::{ToSql, Type};
use dyno_postgres::postgres::{GenericClient, Statement};

use crate::client::Chain;
use crate::error::{Code, Error, Result};
use crate::fetch::micros;
use crate::record::Batch;
use crate::topic::TopicPartition;

/// The two outcomes of an append that the server has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// All of it is in the log.
    New {
        /// The offset of the batch's first record.
        base_offset: i64,
        /// When it was appended, by the server's clock, in microseconds since 1970.
        appended_at_us: i64,
    },
    /// Nothing was appended, because some of the batch is in the log already. The caller sends the
    /// rest again without that.
    Known {
        /// For each producer of the batch, in its order: the offset of the producer's first record,
        /// or `None` if its records are not in the log. The offset is -1 if they are, but so long
        /// ago that the server does not know it any more.
        offsets: Vec<Option<i64>>,
    },
}

/// The prepared statements of one connection, one for each partition that it appends to.
#[derive(Default)]
pub(crate) struct Appends {
    statements: HashMap<TopicPartition, Statement>,
    /// The statements that store a chain as well.
    chained: HashMap<TopicPartition, Statement>,
}

impl Appends {
    /// Appends a batch. `epoch` is the one under which a broker holds the partition, and 0 in
    /// direct mode.
    pub(crate) fn append(
        &mut self,
        client: &mut impl GenericClient,
        key: TopicPartition,
        epoch: i64,
        batch: &mut Batch,
    ) -> Result<Appended> {
        if batch.records() == 0 {
            return Err(Error::bad_argument("an empty batch cannot be appended"));
        }
        batch.seal()?;
        let statement = prepared(&mut self.statements, client, key, &query(key), &TYPES)?;
        let bodies = batch.joined();
        run(client, &statement, &parameters(&epoch, batch, &bodies), key)
    }

    /// Appends a batch and stores the producer's chain in the same statement. If the batch is in
    /// the log already the chain is left alone, because it was stored with the batch.
    pub(crate) fn append_chained(
        &mut self,
        client: &mut impl GenericClient,
        key: TopicPartition,
        batch: &mut Batch,
        chain: &Chain,
    ) -> Result<Appended> {
        batch.seal()?;
        let types: Vec<Type> = TYPES.iter().chain(&CHAIN_TYPES).cloned().collect();
        let query = query_chained(key);
        let statement = prepared(&mut self.chained, client, key, &query, &types)?;
        let bodies = batch.joined();
        let Some(producer) = batch.producers.first() else {
            return Err(Error::bad_argument("a chain needs a producer"));
        };
        let epoch = 0;
        let mut all = parameters(&epoch, batch, &bodies).to_vec();
        all.extend([
            producer as &(dyn ToSql + Sync),
            &chain.records,
            &chain.hash,
            &chain.marks,
        ]);
        run(client, &statement, &all, key)
    }
}

fn prepared(
    known: &mut HashMap<TopicPartition, Statement>,
    client: &mut impl GenericClient,
    key: TopicPartition,
    query: &str,
    types: &[Type],
) -> Result<Statement> {
    if let Some(statement) = known.get(&key) {
        return Ok(statement.clone());
    }
    let made = client
        .prepare_typed(query, types)
        .map_err(|e| refused(e, key))?;
    known.insert(key, made.clone());
    Ok(made)
}

fn parameters<'a>(
    epoch: &'a i64,
    batch: &'a Batch,
    bodies: &'a (dyn ToSql + Sync),
) -> [&'a (dyn ToSql + Sync); 16] {
    let mut all: [&(dyn ToSql + Sync); 16] = [epoch; 16];
    all[1..5].copy_from_slice(&[
        &batch.producers,
        &batch.first_sequences,
        &batch.last_sequences,
        &batch.relatives,
    ]);
    all[5..].copy_from_slice(&row_parameters(batch, bodies));
    all
}

/// The rows of a batch that was sealed, in the order in which the functions of the database take
/// them.
pub(crate) fn row_parameters<'a>(
    batch: &'a Batch,
    bodies: &'a (dyn ToSql + Sync),
) -> [&'a (dyn ToSql + Sync); 11] {
    [
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
        bodies,
    ]
}

fn run(
    client: &mut impl GenericClient,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
    key: TopicPartition,
) -> Result<Appended> {
    let row = client
        .query_one(statement, parameters)
        .map_err(|e| refused(e, key))?;
    Ok(match row.get::<_, Option<i64>>(0) {
        Some(base_offset) => Appended::New {
            base_offset,
            appended_at_us: micros(row.get(2)),
        },
        None => Appended::Known {
            offsets: row
                .get::<_, Option<Vec<Option<i64>>>>(1)
                .unwrap_or_default(),
        },
    })
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

/// Producer, records, hash and marks.
const CHAIN_TYPES: [Type; 4] = [Type::INT8, Type::INT8, Type::INT8, Type::INT8_ARRAY];

/// The append is a materialized query within the statement, so it runs exactly once, and before the
/// chain is stored.
fn query_chained(key: TopicPartition) -> String {
    let append = query(key);
    let TopicPartition {
        topic_id,
        partition,
    } = key;
    format!(
        "WITH done AS MATERIALIZED ({append}), stored AS ( \
           INSERT INTO pubsub.chains (topic_id, partition, producer_id, records, chain, marks) \
           SELECT {topic_id}, {partition}, $17, $18, $19, $20 FROM done WHERE base_offset IS NOT NULL \
           ON CONFLICT (topic_id, partition, producer_id) DO UPDATE \
              SET records = excluded.records, chain = excluded.chain, marks = excluded.marks) \
         SELECT base_offset, known, appended_at FROM done"
    )
}

fn query(key: TopicPartition) -> String {
    let TopicPartition {
        topic_id,
        partition,
    } = key;
    format!(
        "SELECT base_offset, known, appended_at FROM pubsub.append_{topic_id}_{partition}\
         ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
    )
}

/// Turns the error of an append into ours. Each partition has a function of its own, which is
/// dropped with the topic, so an unknown function means an unknown topic.
fn refused(error: dyno_postgres::postgres::Error, key: TopicPartition) -> Error {
    if error.code().is_some_and(|state| state.code() == "42883") {
        let text = format_args!(
            "there is no topic {} with partition {}, or the schema is not installed",
            key.topic_id, key.partition
        );
        return Error::new(Code::UnknownTopic, text);
    }
    Error::statement(format_args!("append to {key}"))(error)
}

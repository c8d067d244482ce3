//! A producer that is known by a name, so that one that is started again continues where the last
//! one stopped.
//!
//! The name stands for producer ids of its own, negative ones, which the sequence of ids never
//! returns. A partition counts the records that it has of each producer in the transaction that
//! appends them. So a producer that knows which of its records go to which partition knows which of
//! them are in the log. That depends on the number of partitions, and therefore so does the id. A
//! name that was used with another number of partitions is refused.

use std::collections::BTreeMap;

use super::chain::Chain;
use crate::connection::Connection;
use crate::error::{Code, Error, Result};
use crate::topic::Topic;

/// The most partitions that a topic may have.
const PARTITIONS_MOST: u32 = 1000;

/// The producer id of a name at a topic of this many partitions.
pub(super) fn id(name: &str, partitions: u32) -> i64 {
    // FNV-1a, 64 bits: the id is stored, so it may not change with the library that computes it.
    let text = format!("{name}/{partitions}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    -((hash >> 1).max(1).cast_signed())
}

/// What a partition has of a named producer.
#[derive(Debug, Clone, Default)]
pub(super) struct Sent {
    pub records: i64,
    /// The hash over these records; `None` if an earlier version of this program wrote them, which
    /// stored none.
    pub chain: Option<Chain>,
}

/// What each partition of `topic` on this server has of `name`.
///
/// # Errors
/// `bad-argument` where the name was used when the topic had another number of partitions.
pub(super) fn sent_before(
    connection: &mut Connection,
    topic_id: i32,
    topic: &Topic,
    name: &str,
) -> Result<BTreeMap<i32, Sent>> {
    // The id depends on the number of partitions. All ids that the name can have had are looked
    // for, so that a use with another number is refused and not taken for a new name.
    let ids: Vec<i64> = (1..=PARTITIONS_MOST).map(|n| id(name, n)).collect();
    let failed = || Error::statement(format!("find the producer {name:?}"));
    let mut transaction = connection.client().transaction().map_err(failed())?;
    // What a producer sent before it was killed may be on its way to its commit. The row locks wait
    // for that. A batch that comes later all the same finds its sequences taken, or takes those of
    // this producer, whose own batch is then refused.
    transaction
        .query(
            "SELECT FROM pubsub.partitions WHERE topic_id = $1 ORDER BY partition FOR UPDATE",
            &[&topic_id],
        )
        .map_err(failed())?;
    let rows = transaction
        .query(
            "SELECT partition, producer_id, p.sequence, c.records, c.chain, c.marks FROM pubsub.producers AS p \
               LEFT JOIN pubsub.chains AS c USING (topic_id, partition, producer_id) \
              WHERE topic_id = $1 AND producer_id = ANY($2)",
            &[&topic_id, &ids],
        )
        .map_err(failed())?;
    transaction.commit().map_err(failed())?;
    let mut sent = BTreeMap::new();
    let own = id(name, topic.options.partitions);
    for row in rows {
        let (partition, producer, sequence): (i32, i64, i64) = (row.get(0), row.get(1), row.get(2));
        if producer != own {
            let then = ids
                .iter()
                .position(|id| *id == producer)
                .map_or(0, |at| at + 1);
            let text = format_args!(
                "producer {name:?} sent when topic {:?} had {then} partitions, and it has {}: what is there of it \
                 cannot be told from what is not",
                topic.name, topic.options.partitions
            );
            return Err(Error::new(Code::BadArgument, text));
        }
        let records = sequence + 1;
        // A chain that covers fewer records was stored before a version that knew no chains
        // appended more, so it says nothing about those.
        let chain = row
            .get::<_, Option<i64>>(3)
            .filter(|covers| *covers == records);
        let chain = chain.map(|records| Chain {
            records,
            hash: row.get(4),
            marks: row.get(5),
        });
        sent.insert(partition, Sent { records, chain });
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_negative_and_differ_and_stay_what_they_are() {
        let ids: Vec<i64> = (1..=PARTITIONS_MOST).map(|n| id("archive", n)).collect();
        assert!(ids.iter().all(|id| *id < 0));
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ids.len());
        assert_ne!(id("a", 1), id("b", 1));
        assert_eq!(id("archive", 4), ids[3]);
    }
}

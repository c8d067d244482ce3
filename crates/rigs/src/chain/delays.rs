//! Measures how long records took from the log to the table: from the time at which the server
//! appended them to the time at which the table's ledger had them. Both times are from the one
//! clock of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dyno_ingest::table::{Manifest, stream_name};
use dyno_pubsub::{Connection, Dsn};

use super::children::TOPIC;
use crate::RigError;
use crate::pubsub::FlowError;
use crate::quantiles::QUANTILES;

/// Bytes of one fetch when the times of appends are read.
const FETCH_BYTES: usize = 8 << 20;

/// When the ledger had which records.
#[derive(Debug, Default)]
pub(super) struct CommitTimes {
    /// By partition: the offset behind the last record, and when it was first seen, microseconds
    /// since 1970.
    upto: BTreeMap<i32, Vec<(u64, i64)>>,
    generation: u64,
    /// How often the ledger was seen to have changed.
    pub(super) commits: u64,
}

impl CommitTimes {
    /// Reads the ledger and returns how many records it has.
    pub(super) fn look(&mut self, table: &Path, partitions: u32) -> Result<u64, RigError> {
        let Some(manifest) = Manifest::read(table)? else {
            return Ok(0);
        };
        // The ledger is read while the watch replaces it. Each read sees one whole generation, so
        // the time is taken after the read: a record counts as late rather than as early.
        let now = now_us();
        if manifest.generation != self.generation {
            self.generation = manifest.generation;
            self.commits += 1;
        }
        let positions = manifest.positions();
        let mut records = 0;
        for partition in 0..i32::try_from(partitions).unwrap_or(i32::MAX) {
            let Some(position) = positions.get(&stream_name("wspr", TOPIC, partition)) else {
                continue;
            };
            records += position.next;
            let times = self.upto.entry(partition).or_default();
            if times.last().is_none_or(|(upto, _)| *upto < position.next) {
                times.push((position.next, now));
            }
        }
        Ok(records)
    }

    /// Percentiles of the delay over all records, in seconds.
    pub(super) fn percentiles(&self, dsn: &Dsn) -> Result<BTreeMap<String, f64>, RigError> {
        let log = |error: dyno_pubsub::Error| RigError::from(FlowError::from(error));
        let mut connection = Connection::open(dsn).map_err(log)?;
        let topic_id = connection.topic(TOPIC).map_err(log)?.topic_id;
        let mut delays: Vec<(i64, u64)> = Vec::new();
        // The append times are read after the run, so that reading the whole topic does not compete
        // with the chain.
        for (partition, times) in &self.upto {
            let mut offset = 0;
            loop {
                let fetched = connection.fetch(topic_id, *partition, offset, FETCH_BYTES);
                let fetched = fetched.map_err(log)?;
                if fetched.rows.is_empty() {
                    break;
                }
                for row in &fetched.rows {
                    // A batch of the watch ends where a fetch did, which is between two rows.
                    let last = row.base_offset + i64::from(row.count) - 1;
                    let last = u64::try_from(last).unwrap_or(0);
                    let at = times.partition_point(|(upto, _)| *upto <= last);
                    if let Some((_, seen_us)) = times.get(at) {
                        let count = u64::from(row.count.unsigned_abs());
                        delays.push((seen_us - row.appended_at_us, count));
                    }
                }
                offset = fetched.next_offset;
            }
        }
        delays.sort_unstable();
        let percentiles = QUANTILES.iter().filter_map(|(label, share)| {
            Some((format!("latency-{label}"), percentile(&delays, *share)?))
        });
        Ok(percentiles.collect())
    }
}

/// The delay in seconds that a `share` (0 to 1) of the records does not exceed.
fn percentile(delays: &[(i64, u64)], share: f64) -> Option<f64> {
    let all: u64 = delays.iter().map(|(_, count)| count).sum();
    let wanted = (share * all as f64).ceil() as u64;
    let mut upto = 0;
    let found = delays.iter().find(|(_, count)| {
        upto += count;
        upto >= wanted
    });
    found.map(|(delay_us, _)| *delay_us as f64 / 1e6)
}

/// Wall-clock time in microseconds since 1970, like the server's append times.
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_weigh_rows_by_their_records() {
        let delays = [(1_000_000, 98), (2_000_000, 1), (5_000_000, 1)];
        assert_eq!(percentile(&delays, 0.5), Some(1.0));
        assert_eq!(percentile(&delays, 0.99), Some(2.0));
        assert_eq!(percentile(&delays, 1.0), Some(5.0));
        assert_eq!(percentile(&[], 0.5), None);
    }
}

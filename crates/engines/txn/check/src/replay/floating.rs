//! Transactions of unknown outcome whose timestamp no client was told. A read that saw one of them
//! bounds its place in the order: not above the reader's timestamp, and not below the version that
//! it replaced. In the end the bounds must leave a place, and no reader after that place may have
//! seen what was there before.

use std::collections::{HashMap, HashSet};

use crate::history::{History, Key, Op, Outcome, Transaction, Value};
use crate::verdict::{Rule, Verdict};

use super::Replay;
use super::model::{Version, Written};

/// The range of timestamps that a floating transaction may have, and the places of the reads that
/// prove it.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    above: (u64, usize),
    upto: (u64, usize),
}

/// A read that saw another version of a row that a floating transaction may have written.
#[derive(Debug, Clone, Copy)]
struct Sighting {
    reader_timestamp: u64,
    version_timestamp: u64,
    reader: usize,
}

/// What is known of floating transactions so far.
#[derive(Debug, Default)]
pub(super) struct Floating {
    written: HashMap<usize, HashSet<Key>>,
    /// Rows that some of them may have deleted, and when the first of these began. Absence does not
    /// say which one did.
    deleted: HashMap<Key, u64>,
    /// Rows that some of them may have written, and when the first of these began.
    rows: HashMap<Key, u64>,
    bounds: HashMap<usize, Bounds>,
    sightings: HashMap<Key, Vec<Sighting>>,
}

impl Floating {
    pub fn from_history(history: &History) -> Self {
        let mut floating = Self::default();
        for (place, transaction) in history.transactions.iter().enumerate() {
            if transaction.outcome == Outcome::Unknown && transaction.timestamp.is_none() {
                let keys: HashSet<Key> = transaction.written().collect();
                let begin_ns = transaction.begin_ns;
                for key in &keys {
                    first(&mut floating.rows, *key, begin_ns);
                }
                for op in &transaction.ops {
                    if let Op::Write { key, value: None } = op {
                        first(&mut floating.deleted, *key, begin_ns);
                    }
                }
                floating.written.insert(place, keys);
            }
        }
        floating
    }

    /// Whether one of them may have deleted the row before this reader saw it.
    pub fn may_delete(&self, key: Key, reader: &Transaction) -> bool {
        began_before_end(&self.deleted, key, reader)
    }

    /// Whether one of them may have written the row before this reader saw it.
    pub fn touches(&self, key: Key, reader: &Transaction) -> bool {
        began_before_end(&self.rows, key, reader)
    }

    /// Notes that a reader saw a version of a row, if it is not a floating one.
    pub fn read(&mut self, key: Key, reader_timestamp: u64, seen: Option<&Version>, reader: usize) {
        let version_timestamp = seen.map_or(0, |version| version.timestamp);
        let floats = seen.is_some_and(|version| self.written.contains_key(&version.writer));
        if self.rows.contains_key(&key) && !floats {
            self.sightings.entry(key).or_default().push(Sighting {
                reader_timestamp,
                version_timestamp,
                reader,
            });
        }
    }

    /// Notes that `reader`, whose timestamp is `upto`, saw a floating transaction in a row whose
    /// newest settled version has timestamp `above`.
    fn seen(&mut self, place: usize, above: u64, upto: u64, reader: usize) {
        let bounds = self.bounds.entry(place).or_insert(Bounds {
            above: (above, reader),
            upto: (upto, reader),
        });
        bounds.above = bounds.above.max((above, reader));
        bounds.upto = bounds.upto.min((upto, reader));
    }

    /// Reports the transactions that have no place in the order.
    pub fn judge(&self, history: &History, verdict: &mut Verdict) {
        let all = &history.transactions;
        // In order, so that the same history gives the same sentences.
        let mut places: Vec<&usize> = self.bounds.keys().collect();
        places.sort();
        for &place in places {
            let Bounds { above, upto } = self.bounds[&place];
            let mut torn = |yes: usize, no: usize| {
                verdict.add(Rule::TornTransaction, || {
                    format!(
                        "T{} has no place in the order: T{} saw it, T{} did not: {}; {}; {}",
                        all[place].id, all[yes].id, all[no].id, all[place], all[yes], all[no]
                    )
                });
            };
            // It must be above the version that it replaced for one reader, and not above the
            // timestamp of another reader that saw it.
            if above.0 >= upto.0 {
                torn(upto.1, above.1);
            }
            for key in &self.written[&place] {
                for sighting in self.sightings.get(key).into_iter().flatten() {
                    // The timestamp of the transaction is at most that of the first reader that saw
                    // it. Readers after that must not see versions that are older than the
                    // transaction.
                    let after = sighting.reader_timestamp >= upto.0;
                    if after && sighting.version_timestamp <= above.0 {
                        torn(upto.1, sighting.reader);
                    }
                }
            }
        }
    }
}

/// Notes a beginning of a transaction with this row.
fn first(begins: &mut HashMap<Key, u64>, key: Key, begin_ns: u64) {
    let begin = begins.entry(key).or_insert(begin_ns);
    *begin = begin_ns.min(*begin);
}

/// Whether one of the transactions with this row began before the reader ended. Nothing can have
/// seen what began later.
fn began_before_end(begins: &HashMap<Key, u64>, key: Key, reader: &Transaction) -> bool {
    let begin = begins.get(&key);
    begin.is_some_and(|begin| reader.end_ns.is_none_or(|end| end >= *begin))
}

impl Replay<'_> {
    /// Whether a value that no version explains comes from a floating transaction. If so, it
    /// becomes the newest version.
    pub(super) fn float(&mut self, place: usize, key: Key, seen: Option<&Value>) -> bool {
        let timestamp = self.timestamp(place);
        let settled = self.model.versions(key).iter().rev().find(|v| !v.maybe);
        let above = settled.map_or(0, |version| version.timestamp);
        let Some(writer) = self.writers.place(key, seen) else {
            return false;
        };
        // The value names its writer, but the writer may have written other rows only.
        let wrote = self.floating.written.get(&writer);
        if !wrote.is_some_and(|keys| keys.contains(&key)) {
            return false;
        }
        self.floating.seen(writer, above, timestamp, place);
        // The timestamp of the version is not known. That of the version it replaced is a lower
        // bound.
        self.model
            .install(key, above, writer, Written::Is(seen.cloned()), false);
        true
    }
}

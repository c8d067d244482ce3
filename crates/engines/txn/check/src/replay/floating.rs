//! Transactions of unknown outcome whose timestamp no client was told. A read that saw one bounds
//! its place: not above the reader's stamp, not below the version that it hid. In the end the
//! bounds must leave a place, and no reader after that place may have seen what was there
//! before it.

use std::collections::{HashMap, HashSet};

use crate::history::{History, Key, Op, Outcome, Value};
use crate::verdict::{Rule, Verdict};

use super::Replay;
use super::model::{Version, Written};

/// Where a floating transaction can lie, and which reads say so (places).
#[derive(Debug, Clone, Copy)]
struct Bounds {
    above: (u64, usize),
    upto: (u64, usize),
}

/// A read of a row that a floating transaction may have written.
#[derive(Debug, Clone, Copy)]
struct Sighting {
    reader_stamp: u64,
    version_stamp: u64,
    reader: usize,
}

/// What is known of floating transactions so far.
#[derive(Debug, Default)]
pub(super) struct Floating {
    written: HashMap<usize, HashSet<Key>>,
    /// Rows that some of them may have deleted: absence does not say who did it.
    deleted: HashSet<Key>,
    rows: HashSet<Key>,
    bounds: HashMap<usize, Bounds>,
    sightings: HashMap<Key, Vec<Sighting>>,
}

impl Floating {
    pub fn of(history: &History) -> Self {
        let mut floating = Self::default();
        for (place, transaction) in history.transactions.iter().enumerate() {
            if transaction.outcome == Outcome::Unknown && transaction.stamp.is_none() {
                let keys: HashSet<Key> = transaction.written().collect();
                floating.rows.extend(&keys);
                floating
                    .deleted
                    .extend(transaction.ops.iter().filter_map(|op| match op {
                        Op::Write { key, value: None } => Some(*key),
                        _ => None,
                    }));
                floating.written.insert(place, keys);
            }
        }
        floating
    }

    /// Whether one of them may have deleted a row.
    pub fn may_delete(&self, key: Key) -> bool {
        self.deleted.contains(&key)
    }

    /// Whether one of them may have written a row.
    pub fn touches(&self, key: Key) -> bool {
        self.rows.contains(&key)
    }

    /// Notes that a reader saw a version of a row.
    pub fn read(&mut self, key: Key, reader_stamp: u64, seen: Option<&Version>, reader: usize) {
        let version_stamp = seen.map_or(0, |version| version.stamp);
        let floats = seen.is_some_and(|version| self.written.contains_key(&version.writer));
        if self.rows.contains(&key) && !floats {
            self.sightings.entry(key).or_default().push(Sighting {
                reader_stamp,
                version_stamp,
                reader,
            });
        }
    }

    /// Notes that `reader` saw a floating transaction where the newest settled version has stamp
    /// `above`.
    fn seen(&mut self, place: usize, above: u64, upto: u64, reader: usize) {
        let bounds = self.bounds.entry(place).or_insert(Bounds {
            above: (above, reader),
            upto: (upto, reader),
        });
        bounds.above = bounds.above.max((above, reader));
        bounds.upto = bounds.upto.min((upto, reader));
    }

    /// Says which transactions cannot lie anywhere.
    pub fn judge(&self, history: &History, verdict: &mut Verdict) {
        let all = &history.transactions;
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
            if above.0 >= upto.0 {
                torn(upto.1, above.1);
            }
            for key in &self.written[&place] {
                for sighting in self.sightings.get(key).into_iter().flatten() {
                    let after = sighting.reader_stamp >= upto.0;
                    if after && sighting.version_stamp <= above.0 {
                        torn(upto.1, sighting.reader);
                    }
                }
            }
        }
    }
}

impl Replay<'_> {
    /// Whether a value that no version explains comes from a floating transaction; then it is the
    /// newest.
    pub(super) fn float(&mut self, place: usize, key: Key, seen: Option<&Value>) -> bool {
        let stamp = self.stamp(place);
        let settled = self.model.versions(key).iter().rev().find(|v| !v.maybe);
        let above = settled.map_or(0, |version| version.stamp);
        let Some(writer) = self.writers.place(key, seen) else {
            return false;
        };
        let wrote = self.floating.written.get(&writer);
        if !wrote.is_some_and(|keys| keys.contains(&key)) {
            return false;
        }
        self.floating.seen(writer, above, stamp, place);
        // The stamp of the version is not known; what stands there is its lower bound.
        self.model
            .install(key, above, writer, Written::Is(seen.cloned()), false);
        true
    }
}

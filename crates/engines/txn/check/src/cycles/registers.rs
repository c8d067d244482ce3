//! Finds the order of versions of registers: a transaction that read a version and replaced it
//! comes directly after its writer.

use std::collections::{BTreeMap, HashSet};

use crate::history::{Key, Op, Value};
use crate::verdict::{Rule, Verdict};

use super::graph::{Graph, Why};
use super::observed::Observed;

/// A version, as its writer and value, or `None` for the absence before any write.
type Version = Option<(u64, i64)>;

#[derive(Debug, Default)]
struct Around {
    readers: Vec<usize>,
    successors: Vec<usize>,
}

/// Links the transactions that happened by the registers that they read and replaced.
pub(super) fn dependencies(observed: &Observed, graph: &mut Graph, verdict: &mut Verdict) {
    let all = &observed.history.transactions;
    // Absence identifies a version only in rows that are never deleted.
    let deleted: HashSet<Key> = (all.iter().flat_map(|t| &t.ops))
        .filter_map(|op| match op {
            Op::Write { key, value: None } => Some(*key),
            _ => None,
        })
        .collect();
    let mut versions: BTreeMap<(Key, Version), Around> = BTreeMap::new();
    for place in (0..all.len()).filter(|&place| observed.happened[place]) {
        let written: HashSet<Key> = all[place].written().collect();
        for (key, reading) in observed.readings(place) {
            let version = match reading.value {
                Some(Value::Register { n, by }) => Some((*by, *n)),
                None if !deleted.contains(&key) => None,
                _ => continue,
            };
            let around = versions.entry((key, version)).or_default();
            if around.readers.last() != Some(&place) {
                around.readers.push(place);
                if written.contains(&key) {
                    around.successors.push(place);
                }
            }
        }
    }
    for ((key, version), around) in versions {
        link(observed, key, version, &around, graph);
        // One version can have only one successor that read it.
        if let [first, second, ..] = around.successors[..] {
            let (a, b) = (&all[first], &all[second]);
            verdict.add(Rule::LostUpdate, || {
                format!("both read one version of {key} and both replaced it: {a}; {b}")
            });
        }
    }
}

fn link(observed: &Observed, key: Key, version: Version, around: &Around, graph: &mut Graph) {
    let writer = version.and_then(|(by, _)| observed.places.get(&by).copied());
    let writer = writer.filter(|&place| observed.happened[place]);
    for &reader in &around.readers {
        if let Some(writer) = writer {
            graph.link(writer, reader, Why::Wr(key));
        }
        for &successor in &around.successors {
            graph.link(reader, successor, Why::Rw(key));
        }
    }
    for &successor in &around.successors {
        if let Some(writer) = writer {
            graph.link(writer, successor, Why::Ww(key));
        }
    }
}

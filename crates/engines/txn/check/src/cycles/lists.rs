//! Finds the order of the versions of a list, and the dependencies that follow from it.

use std::collections::{BTreeMap, HashMap};

use crate::history::{Key, Op, Value};
use crate::verdict::{Rule, Verdict};

use super::graph::{Graph, Why};
use super::observed::{Observed, Reading};

/// A list as all of its readers together show it.
#[derive(Debug, Default)]
struct Chain<'h> {
    /// The longest reading. Every version of the list is a prefix of it.
    order: &'h [u64],
    readings: Vec<Reading<'h>>,
    /// Elements that were appended, with the place of their writer, in the order of the history.
    appended: Vec<(u64, usize)>,
    /// Whether some transaction wrote the row as a register. An absent list then proves nothing.
    register: bool,
}

fn list<'h>(reading: &Reading<'h>) -> &'h [u64] {
    match reading.value {
        Some(Value::List(list)) => list,
        _ => &[],
    }
}

/// Links the transactions that happened by the lists that they read and appended to.
pub(super) fn dependencies(observed: &Observed, graph: &mut Graph, verdict: &mut Verdict) {
    for (key, chain) in chains(observed) {
        if chain.register {
            continue;
        }
        lost(observed, key, &chain, verdict);
        link(observed, key, &chain, graph);
        for reading in &chain.readings {
            let read = list(reading);
            if !chain.order.starts_with(read) {
                let reader = &observed.history.transactions[reading.reader];
                verdict.add(Rule::IncompatibleOrder, || {
                    let same = read
                        .iter()
                        .zip(chain.order)
                        .take_while(|(a, b)| a == b)
                        .count();
                    let (read, order) = (read.get(same), chain.order.get(same));
                    format!(
                        "{key} was read with {read:?} and with {order:?} in place {same}: {reader}"
                    )
                });
            }
        }
    }
}

fn chains<'h>(observed: &Observed<'h>) -> BTreeMap<Key, Chain<'h>> {
    let mut chains: BTreeMap<Key, Chain> = BTreeMap::new();
    for (place, transaction) in observed.history.transactions.iter().enumerate() {
        if !observed.happened[place] {
            continue;
        }
        for op in &transaction.ops {
            match op {
                Op::Append { key, element } => {
                    let appended = &mut chains.entry(*key).or_default().appended;
                    appended.push((*element, place));
                }
                Op::Write { key, .. } | Op::Change { key } => {
                    chains.entry(*key).or_default().register = true;
                }
                _ => {}
            }
            for (key, value) in op.rows() {
                if let Some(Value::List(list)) = value {
                    let chain = chains.entry(key).or_default();
                    // Every version is a prefix of all later ones, so the longest reading has the
                    // most complete order.
                    if list.len() > chain.order.len() {
                        chain.order = list;
                    }
                }
            }
        }
    }
    for place in (0..observed.happened.len()).filter(|&place| observed.happened[place]) {
        for (key, reading) in observed.readings(place) {
            if let Some(chain) = chains.get_mut(&key) {
                chain.readings.push(reading);
            }
        }
    }
    chains
}

/// Reports two transactions that read the same version and both appended. One of them did not see
/// the other, although one must come first.
fn lost(observed: &Observed, key: Key, chain: &Chain, verdict: &mut Verdict) {
    let all = &observed.history.transactions;
    let appends: std::collections::HashSet<usize> = chain.appended.iter().map(|a| a.1).collect();
    let mut readers: HashMap<usize, usize> = HashMap::new();
    for reading in chain
        .readings
        .iter()
        .filter(|r| appends.contains(&r.reader))
    {
        // All readings are prefixes of one order, so equal lengths mean equal versions.
        let other = *readers.entry(list(reading).len()).or_insert(reading.reader);
        if other != reading.reader {
            let (a, b) = (&all[other], &all[reading.reader]);
            verdict.add(Rule::LostUpdate, || {
                format!("both read one version of {key} and both appended to it: {a}; {b}")
            });
        }
    }
}

/// Adds the edges of one list to the graph.
fn link(observed: &Observed, key: Key, chain: &Chain, graph: &mut Graph) {
    let writer = |element: &u64| {
        let writer = observed.appenders.get(&(key, *element)).copied();
        writer.filter(|&place| observed.happened[place])
    };
    for pair in chain.order.windows(2) {
        if let (Some(before), Some(after)) = (writer(&pair[0]), writer(&pair[1])) {
            graph.link(before, after, Why::Ww(key));
        }
    }
    // Appends that no one read come after everything that was read, in an unknown order among
    // themselves.
    let known: std::collections::HashSet<u64> = chain.order.iter().copied().collect();
    let unread: Vec<usize> = chain
        .appended
        .iter()
        .filter(|(element, _)| !known.contains(element))
        .map(|a| a.1)
        .collect();
    if let Some(last) = chain.order.last().and_then(writer) {
        unread
            .iter()
            .for_each(|&place| graph.link(last, place, Why::Ww(key)));
    }
    for reading in &chain.readings {
        let read = list(reading);
        if let Some(before) = read.last().and_then(writer) {
            graph.link(before, reading.reader, Why::Wr(key));
        }
        // The reader did not see the next element, so it comes before the one that appended that.
        match chain.order.get(read.len()) {
            Some(next) => {
                if let Some(after) = writer(next) {
                    graph.link(reading.reader, after, Why::Rw(key));
                }
            }
            None => unread
                .iter()
                .for_each(|&place| graph.link(reading.reader, place, Why::Rw(key))),
        }
    }
}

//! Replays a history in the order of its timestamps against a model. Every read must have seen
//! exactly the newest version at its timestamp. The cost is linear in the number of operations and
//! the width of scans.
//!
//! Reads of failed transactions, and of those whose outcome is unknown, are judged as well, except
//! for rows that they wrote themselves: a read at a timestamp is repeatable, whatever becomes of
//! the reader. A write of unknown outcome may have happened or not. The first read that tells
//! decides it, and all others must agree. If its timestamp is unknown as well, the reads that saw
//! it bound its place ([`floating`]).

mod floating;
mod model;
mod ranges;
mod rows;
mod strictness;
mod writers;

use std::collections::{HashMap, HashSet};

use crate::history::{History, Key, Op, Outcome, Transaction, Value};
use crate::verdict::{Rule, Verdict};

use floating::Floating;
use model::{Model, Overlay, Written};
use writers::Writers;

/// The reason for which a history cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unplayable {
    /// The database does not tell its order.
    #[error(
        "T{transaction} is committed without a timestamp; only histories with timestamps can be replayed"
    )]
    NoTimestamp {
        /// The id of the first committed transaction without a timestamp.
        transaction: u64,
    },
}

/// Judges a history by its timestamps.
///
/// # Errors
/// A committed transaction has no timestamp, so the history claims no order.
pub fn judge(history: &History) -> Result<Verdict, Unplayable> {
    let without_timestamp = |t: &&Transaction| t.outcome == Outcome::Ok && t.timestamp.is_none();
    if let Some(transaction) = history.transactions.iter().find(without_timestamp) {
        let transaction = transaction.id;
        return Err(Unplayable::NoTimestamp { transaction });
    }
    let mut verdict = Verdict::default();
    strictness::judge(history, &mut verdict);
    let order = order(history, &mut verdict);
    let mut replay = Replay {
        history,
        writers: Writers::from_history(history),
        model: Model::default(),
        floating: Floating::from_history(history),
        decided: HashMap::new(),
        left_alone: HashSet::new(),
        verdict,
    };
    for place in order {
        replay.step(place);
    }
    replay.floating.judge(history, &mut replay.verdict);
    Ok(replay.verdict)
}

/// The places of the transactions with timestamps, ordered by timestamp. Two writers with the same
/// timestamp are a breach.
fn order(history: &History, verdict: &mut Verdict) -> Vec<usize> {
    let all = &history.transactions;
    let mut order: Vec<usize> = (0..all.len())
        .filter(|&at| all[at].timestamp.is_some())
        .collect();
    order.sort_by_key(|&at| {
        // A reader comes before a writer with the same timestamp, so it is judged by what was there
        // before.
        (
            all[at].timestamp,
            all[at].written().next().is_some(),
            all[at].id,
        )
    });
    let committed =
        |at: &usize| all[*at].outcome == Outcome::Ok && all[*at].written().next().is_some();
    let writers: Vec<usize> = order.iter().copied().filter(committed).collect();
    for pair in writers.windows(2) {
        let (a, b) = (&all[pair[0]], &all[pair[1]]);
        if a.timestamp == b.timestamp {
            verdict.add(Rule::SameTimestamp, || {
                format!("two writers have one timestamp: {a}; {b}")
            });
        }
    }
    order
}

/// The state of a replay.
struct Replay<'h> {
    history: &'h History,
    writers: Writers,
    model: Model,
    floating: Floating,
    /// For transactions of unknown outcome, whether they happened, and the place of the reader that
    /// proved it.
    decided: HashMap<usize, (bool, usize)>,
    /// The rows that the current transaction wrote, if it is not committed. Its reads of them are
    /// not judged: an aborted transaction that reads on has lost its own writes, and what an insert
    /// saw is protected by the insert alone.
    left_alone: HashSet<Key>,
    verdict: Verdict,
}

impl<'h> Replay<'h> {
    fn transaction(&self, place: usize) -> &'h Transaction {
        &self.history.transactions[place]
    }

    fn timestamp(&self, place: usize) -> u64 {
        self.transaction(place).timestamp.unwrap_or(0)
    }

    /// Plays one transaction: first its reads against the model and its own writes, then its
    /// writes.
    fn step(&mut self, place: usize) {
        let transaction = self.transaction(place);
        self.left_alone.clear();
        if transaction.outcome != Outcome::Ok {
            self.left_alone.extend(transaction.written());
        }
        let mut overlay = Overlay::default();
        for op in &transaction.ops {
            match op {
                Op::Read { key, value } => self.read(place, &mut overlay, *key, value.as_ref()),
                Op::Write { key, value } => overlay.insert(*key, Written::Is(value.clone())),
                Op::Change { key } => overlay.insert(*key, Written::By(transaction.id)),
                Op::Append { key, element } => {
                    let before = overlay.get(*key).or_else(|| self.model.settled(*key));
                    overlay.insert(*key, appended(before, *element));
                }
                Op::Scan(scan) => self.scan(place, &mut overlay, scan),
                Op::Lookup(lookup) => self.lookup(place, &mut overlay, lookup),
            }
        }
        let maybe = match transaction.outcome {
            Outcome::Fail => return,
            Outcome::Ok => false,
            Outcome::Unknown => true,
        };
        // The writes become visible together at the end, so that the transaction's reads see the
        // snapshot before it.
        let timestamp = self.timestamp(place);
        for (key, written) in overlay.writes() {
            self.model.install(key, timestamp, place, written, maybe);
        }
    }
}

/// A list with one more element, as far as the list is known.
fn appended(before: Option<&Written>, element: u64) -> Written {
    match before {
        Some(Written::Is(None)) => Written::Is(Some(Value::List(vec![element]))),
        Some(Written::Is(Some(Value::List(list)))) => {
            let mut list = list.clone();
            list.push(element);
            Written::Is(Some(Value::List(list)))
        }
        // The list before is not known, for example because a transaction of unknown outcome may
        // have appended. Its last element still identifies the version.
        _ => Written::EndsWith(element),
    }
}

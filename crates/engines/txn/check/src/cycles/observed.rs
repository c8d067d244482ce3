//! Finds which transactions happened, what each read from others, and what each wrote.

use std::collections::{BTreeSet, HashMap};

use crate::history::{History, Key, Op, Outcome, Scan, Transaction, Value, shown};
use crate::verdict::{Rule, Verdict};

/// A row as a transaction read it, before it wrote the row itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'h> {
    /// The place of the reader in the history.
    pub reader: usize,
    /// The value that it was given, or `None` if the row was absent.
    pub value: Option<&'h Value>,
}

/// A history with its rows, writers and effects looked up.
#[derive(Debug)]
pub(super) struct Observed<'h> {
    pub history: &'h History,
    /// Whether each transaction happened: it was acknowledged, or a transaction that happened saw a
    /// write of it.
    pub happened: Vec<bool>,
    /// The place of the transaction that appended an element, by list and element.
    pub appenders: HashMap<(Key, u64), usize>,
    /// The place of each transaction, by its id.
    pub places: HashMap<u64, usize>,
    /// All rows that a transaction wrote or tried to write.
    written: BTreeSet<Key>,
}

impl<'h> Observed<'h> {
    /// Finds what happened. Reports reads of values that were never written, that failed
    /// transactions wrote, or that their writers replaced.
    pub fn from_history(history: &'h History, verdict: &mut Verdict) -> Self {
        let all = &history.transactions;
        let mut observed = Self {
            history,
            happened: all.iter().map(|t| t.outcome == Outcome::Ok).collect(),
            appenders: HashMap::new(),
            places: all
                .iter()
                .enumerate()
                .map(|(place, t)| (t.id, place))
                .collect(),
            written: all.iter().flat_map(Transaction::written).collect(),
        };
        for (place, transaction) in all.iter().enumerate() {
            for op in &transaction.ops {
                let Op::Append { key, element } = op else {
                    continue;
                };
                if let Some(other) = observed.appenders.insert((*key, *element), place) {
                    let (a, b) = (&all[other], transaction);
                    verdict.add(Rule::Duplicate, || {
                        format!("{element} was appended to {key} twice: {a}; {b}")
                    });
                }
            }
        }
        observed.spread();
        for place in 0..all.len() {
            if observed.happened[place] {
                observed.judge(place, verdict);
            }
        }
        observed
    }

    /// Marks transactions of unknown outcome as happened if one that happened saw a write of them,
    /// and repeats that for what those saw.
    fn spread(&mut self) {
        let all = &self.history.transactions;
        let mut todo: Vec<usize> = (0..all.len())
            .filter(|&place| self.happened[place])
            .collect();
        while let Some(place) = todo.pop() {
            for (key, value) in all[place].ops.iter().flat_map(Op::rows) {
                for writer in self.writers(key, value) {
                    if !self.happened[writer] && all[writer].outcome == Outcome::Unknown {
                        self.happened[writer] = true;
                        todo.push(writer);
                    }
                }
            }
        }
    }

    /// The places of the transactions that a value names as its writers.
    fn writers(&self, key: Key, value: Option<&Value>) -> Vec<usize> {
        match value {
            Some(Value::Register { by, .. }) => self.places.get(by).copied().into_iter().collect(),
            Some(Value::List(list)) => {
                let writer = |element: &u64| self.appenders.get(&(key, *element)).copied();
                list.iter().filter_map(writer).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What a transaction read, for each row that it had not written before.
    pub fn readings(&self, place: usize) -> Vec<(Key, Reading<'h>)> {
        let mut written = BTreeSet::new();
        let mut readings = Vec::new();
        for op in &self.history.transactions[place].ops {
            written.extend(op.written());
            let absent = match op {
                Op::Scan(scan) => self.absent(scan),
                _ => Vec::new(),
            };
            let rows = op.rows().chain(absent.into_iter().map(|key| (key, None)));
            let foreign = rows.filter(|(key, _)| !written.contains(key));
            readings.extend(foreign.map(|(key, value)| {
                let reader = place;
                (key, Reading { reader, value })
            }));
        }
        readings
    }

    /// The rows that a scan would have returned if they had existed.
    fn absent(&self, scan: &Scan) -> Vec<Key> {
        let covered = scan.covered();
        let range = Key::new(scan.table, covered.start)..Key::new(scan.table, covered.end);
        let found: BTreeSet<u64> = scan.rows.iter().map(|row| row.0).collect();
        let keys = self.written.range(range).copied();
        keys.filter(|key| !found.contains(&key.id)).collect()
    }

    /// Judges the origin of the values that a transaction read, and that it saw its own writes.
    fn judge(&self, place: usize, verdict: &mut Verdict) {
        let reader = &self.history.transactions[place];
        let mut own: HashMap<Key, Vec<u64>> = HashMap::new();
        let mut registers: HashMap<Key, Option<&Value>> = HashMap::new();
        for op in &reader.ops {
            match op {
                Op::Append { key, element } => own.entry(*key).or_default().push(*element),
                Op::Write { key, value } => _ = registers.insert(*key, value.as_ref()),
                // The number of a change is not known to the client, so its result cannot be
                // compared any more.
                Op::Change { key } => _ = registers.remove(key),
                _ => {}
            }
            for (key, value) in op.rows() {
                let ours = own.get(&key).map_or(&[][..], Vec::as_slice);
                let list = match value {
                    Some(Value::List(list)) => list.as_slice(),
                    _ => &[],
                };
                let kept = registers.get(&key).is_none_or(|&wrote| wrote == value);
                if !list.ends_with(ours) || !kept {
                    verdict.add(Rule::OwnWrites, || {
                        format!(
                            "{key} = {} is not what it had written: {reader}",
                            shown(value)
                        )
                    });
                }
                match value {
                    Some(Value::List(list)) => self.judge_list(place, key, list, verdict),
                    Some(Value::Register { .. }) => self.judge_register(place, key, value, verdict),
                    Some(Value::Broken(_)) => self.add_unwritten(reader, key, value, verdict),
                    None => {}
                }
            }
        }
    }

    fn add_unwritten(
        &self,
        reader: &Transaction,
        key: Key,
        value: Option<&Value>,
        verdict: &mut Verdict,
    ) {
        verdict.add(Rule::UnwrittenValue, || {
            format!("{key} = {} was never written: {reader}", shown(value))
        });
    }

    fn judge_list(&self, place: usize, key: Key, list: &[u64], verdict: &mut Verdict) {
        let all = &self.history.transactions;
        let reader = &all[place];
        let mut seen = std::collections::HashSet::new();
        for (at, element) in list.iter().enumerate() {
            if !seen.insert(element) {
                verdict.add(Rule::Duplicate, || {
                    format!("{element} stands in {key} twice: {reader}")
                });
            }
            let Some(&writer) = self.appenders.get(&(key, *element)) else {
                self.add_unwritten(reader, key, Some(&Value::List(list.to_vec())), verdict);
                continue;
            };
            let writer_of = &all[writer];
            if writer_of.outcome == Outcome::Fail {
                verdict.add(Rule::AbortedRead, || {
                    format!(
                        "{element} in {key} was read, but its writer failed: {reader}; {writer_of}"
                    )
                });
            }
            // The elements of one transaction become visible together, so its next append to the
            // list must follow directly.
            let next = list.get(at + 1).copied();
            if writer != place
                && self
                    .follows(writer, key, *element)
                    .is_some_and(|own| Some(own) != next)
            {
                verdict.add(Rule::IntermediateRead, || {
                    format!(
                        "{element} in {key} is half of what its writer wrote: {reader}; {writer_of}"
                    )
                });
            }
        }
    }

    /// The element that the appender of `element` appended to the same list right after it.
    fn follows(&self, writer: usize, key: Key, element: u64) -> Option<u64> {
        let ops = &self.history.transactions[writer].ops;
        let mut appended = ops.iter().filter_map(|op| match op {
            Op::Append { key: k, element } if *k == key => Some(*element),
            _ => None,
        });
        appended.find(|&e| e == element)?;
        appended.next()
    }

    fn judge_register(&self, place: usize, key: Key, value: Option<&Value>, verdict: &mut Verdict) {
        let all = &self.history.transactions;
        let reader = &all[place];
        let Some(Value::Register { by, .. }) = value else {
            return;
        };
        let Some(&writer) = self.places.get(by) else {
            return self.add_unwritten(reader, key, value, verdict);
        };
        let writer_of = &all[writer];
        let mut writes = writer_of.ops.iter().filter_map(|op| match op {
            Op::Write { key: k, value } if *k == key => Some(value.as_ref()),
            Op::Change { key: k } if *k == key => Some(value),
            _ => None,
        });
        if writer_of.outcome == Outcome::Fail && writer != place {
            verdict.add(Rule::AbortedRead, || {
                let shown = shown(value);
                format!("{key} = {shown} was read, but its writer failed: {reader}; {writer_of}")
            });
        } else if !writes.clone().any(|wrote| wrote == value) {
            self.add_unwritten(reader, key, value, verdict);
        } else if writer != place && writes.next_back() != Some(value) {
            verdict.add(Rule::IntermediateRead, || {
                let shown = shown(value);
                format!("{key} = {shown} was replaced by its own writer: {reader}; {writer_of}")
            });
        }
    }
}

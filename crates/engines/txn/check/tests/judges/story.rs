//! Histories made from a seed: strictly serializable until they are spoiled.

use std::collections::BTreeMap;

use dyno_sim::Random;
use dyno_txn_check::history::{History, Key, Lookup, Op, Outcome, Scan, Transaction, Value};

type Rows = BTreeMap<Key, Value>;

const ROWS: usize = 4;

/// A serial execution, told as if transactions overlapped: some fail, of some nobody knows whether
/// they happened. The last transaction reads everything.
pub fn random(seed: u64, transactions: u64) -> History {
    let mut random = Random::new(seed);
    let mut rows = Rows::new();
    let mut history = Vec::new();
    for id in 1..=transactions {
        let outcome = match random.below(10) {
            0 => Outcome::Fail,
            1 => Outcome::Unknown,
            _ => Outcome::Ok,
        };
        let happens = outcome == Outcome::Ok || (outcome == Outcome::Unknown && random.one_in(2));
        let mut after = rows.clone();
        let ops = (0..=random.below(4))
            .flat_map(|n| operation(&mut random, id * 10 + n as u64, &mut after));
        let ops = ops.collect();
        if happens {
            rows = after;
        }
        // Its place in the order lies between its beginning and its end, and neighbours overlap.
        let middle = id * 100;
        history.push(Transaction {
            id,
            process: id as u32,
            begin_ns: middle - random.below(90) as u64,
            end_ns: (outcome != Outcome::Unknown).then_some(middle + random.below(150) as u64),
            outcome,
            timestamp: (outcome != Outcome::Unknown || random.one_in(2)).then_some(middle),
            ops,
        });
    }
    let end = (transactions + 10) * 100;
    history.push(Transaction {
        id: transactions + 1,
        process: 0,
        begin_ns: end,
        end_ns: Some(end + 1),
        outcome: Outcome::Ok,
        timestamp: Some(end),
        ops: everything(&rows),
    });
    history.sort_by_key(|t| (t.begin_ns, t.id));
    History {
        transactions: history,
    }
}

fn read(key: Key, rows: &Rows) -> Op {
    let value = rows.get(&key).cloned();
    Op::Read { key, value }
}

fn everything(rows: &Rows) -> Vec<Op> {
    let tables = (1..=2).flat_map(|table| (0..ROWS as u64).map(move |id| Key::new(table, id)));
    tables.map(|key| read(key, rows)).collect()
}

/// Something that transaction `unique / 10` does.
fn operation(random: &mut Random, unique: u64, rows: &mut Rows) -> Vec<Op> {
    let id = random.below(ROWS) as u64;
    let (list, key) = (Key::new(1, id), Key::new(2, id));
    let mut ops = vec![read(if random.one_in(2) { list } else { key }, rows)];
    match random.below(6) {
        0 | 1 => {
            ops = vec![read(list, rows)];
            ops.push(Op::Append {
                key: list,
                element: unique,
            });
            if let Value::List(list) = rows.entry(list).or_insert(Value::List(Vec::new())) {
                list.push(unique);
            }
        }
        2 | 3 => {
            let (n, by) = (random.below(20) as i64, unique / 10);
            let value = (!random.one_in(4)).then_some(Value::Register { n, by });
            match &value {
                Some(value) => rows.insert(key, value.clone()),
                None => rows.remove(&key),
            };
            ops.push(Op::Write { key, value });
        }
        4 => ops.push(scan(random, rows)),
        _ => ops.push(lookup(random, rows)),
    }
    ops
}

fn scan(random: &mut Random, rows: &Rows) -> Op {
    let (from, to) = (random.below(3) as u64, 2 + random.below(4) as u64);
    let limit = random.one_in(2).then_some(random.below(4));
    let reverse = random.one_in(2);
    let range = rows.range(Key::new(2, from)..Key::new(2, to));
    let mut found: Vec<(u64, Value)> = range.map(|(key, value)| (key.id, value.clone())).collect();
    if reverse {
        found.reverse();
    }
    found.truncate(limit.unwrap_or(usize::MAX));
    Op::Scan(Scan {
        table: 2,
        from,
        to,
        reverse,
        limit,
        rows: found,
    })
}

fn lookup(random: &mut Random, rows: &Rows) -> Op {
    let (from, to) = (random.below(10) as i64, 5 + random.below(16) as i64);
    let table = rows.range(Key::new(2, 0)..Key::new(3, 0));
    let mut found: Vec<(i64, u64, Value)> = table
        .filter_map(|(key, value)| match value {
            Value::Register { n, .. } if (from..to).contains(n) => {
                Some((*n, key.id, value.clone()))
            }
            _ => None,
        })
        .collect();
    found.sort_by_key(|row| (row.0, row.1));
    Op::Lookup(Lookup {
        table: 2,
        from,
        to,
        rows: found.into_iter().map(|row| (row.1, row.2)).collect(),
    })
}

/// Takes the last element from one list that a committed transaction read. Says whether that must
/// show: an element of unknown outcome may not have been there.
pub fn spoil(history: &mut History, random: &mut Random) -> bool {
    let unknown: Vec<u64> = (history.transactions.iter())
        .filter(|t| t.outcome == Outcome::Unknown)
        .map(|t| t.id)
        .collect();
    let mut lists: Vec<&mut Vec<u64>> = (history.transactions.iter_mut())
        .filter(|t| t.outcome == Outcome::Ok)
        .flat_map(|t| &mut t.ops)
        .filter_map(|op| match op {
            Op::Read {
                value: Some(Value::List(list)),
                ..
            } => Some(list),
            _ => None,
        })
        .collect();
    if lists.is_empty() {
        return false;
    }
    let chosen = random.below(lists.len());
    let last = lists[chosen].pop();
    last.is_some_and(|element| !unknown.contains(&(element / 10)))
}

/// Gives one register that a committed transaction read another value, which its row has had or
/// another has.
pub fn swap(history: &mut History, random: &mut Random) -> bool {
    let mut values: Vec<&mut Option<Value>> = (history.transactions.iter_mut())
        .filter(|t| t.outcome == Outcome::Ok)
        .flat_map(|t| &mut t.ops)
        .filter_map(|op| match op {
            Op::Read { key, value } if key.table == 2 && value.is_some() => Some(value),
            _ => None,
        })
        .collect();
    if values.len() < 2 {
        return false;
    }
    let (from, to) = (random.below(values.len()), random.below(values.len()));
    let other = values[from].clone();
    let changed = *values[to] != other;
    *values[to] = other;
    changed
}

//! Whether a history is strictly serializable, in the order of its timestamps: each transaction is
//! done again on one sorted map, and must see what it saw.

use std::collections::BTreeSet;

use crate::client::{End, Saw, State, Transaction};

/// What is wrong with the history, if anything is.
pub fn judge(histories: Vec<Transaction>, end: &State) -> Result<usize, String> {
    let seen = seen_values(&histories, end);
    let mut all: Vec<&Transaction> = histories.iter().filter(|t| counts(t, &seen)).collect();
    all.sort_by_key(|t| t.timestamp);
    let mut state = State::new();
    let mut last = 0;
    for transaction in &all {
        let Some(timestamp) = transaction.timestamp else {
            continue;
        };
        if timestamp == last {
            return Err(format!("timestamp {timestamp} twice"));
        }
        last = timestamp;
        if timestamp <= transaction.after {
            let after = transaction.after;
            return Err(format!(
                "timestamp {timestamp} of a transaction that began after {after} ended"
            ));
        }
        replay(transaction, &mut state)?;
    }
    // A transaction of unknown outcome whose timestamp is unknown too, and which was done, has no
    // place.
    let placed = histories
        .iter()
        .all(|t| t.timestamp.is_some() || !counts(t, &seen));
    if placed && state != *end {
        Err(format!("the end is {end:?}, and should be {state:?}"))
    } else {
        Ok(all.len())
    }
}

/// Values that a transaction read or that are there at the end. Each was written by a transaction
/// that committed.
fn seen_values(histories: &[Transaction], end: &State) -> BTreeSet<Vec<u8>> {
    let mut seen: BTreeSet<Vec<u8>> = end.values().cloned().collect();
    for transaction in histories.iter().filter(|t| t.end == End::Committed) {
        for saw in &transaction.saw {
            match saw {
                Saw::Read(_, Some(value)) => drop(seen.insert(value.clone())),
                Saw::Scanned(_, rows) => seen.extend(rows.iter().map(|(_, value)| value.clone())),
                _ => {}
            }
        }
    }
    seen
}

fn counts(transaction: &Transaction, seen: &BTreeSet<Vec<u8>>) -> bool {
    match transaction.end {
        End::Committed => true,
        // An aborted one of which something was seen is a violation that the replay then finds.
        End::Aborted => false,
        End::Unknown => transaction.saw.iter().any(|saw| match saw {
            Saw::Wrote(_, Some(value)) => seen.contains(value),
            _ => false,
        }),
    }
}

fn replay(transaction: &Transaction, state: &mut State) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{transaction:?}: {what}"));
    for saw in &transaction.saw {
        match saw {
            Saw::Read(key, value) => {
                let there = state.get(&(key.table, key.bytes.clone()));
                if there != value.as_ref() {
                    return wrong(format!("{key:?} was {there:?}"));
                }
            }
            Saw::Wrote(key, Some(value)) => {
                state.insert((key.table, key.bytes.clone()), value.clone());
            }
            Saw::Wrote(key, None) => {
                state.remove(&(key.table, key.bytes.clone()));
            }
            Saw::Scanned(table, rows) => {
                let there = state.iter().filter(|((of, _), _)| of == table);
                let mut there: Vec<_> = there
                    .map(|((_, key), value)| (key.clone(), value.clone()))
                    .collect();
                let mut rows = rows.clone();
                if rows
                    .last()
                    .is_some_and(|(key, _)| key.starts_with(b"first three"))
                {
                    rows.pop();
                    there.reverse();
                    there.truncate(3);
                }
                if rows != there {
                    return wrong(format!("a scan of {} rows was {there:?}", rows.len()));
                }
            }
        }
    }
    Ok(())
}

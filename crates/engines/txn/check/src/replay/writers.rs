//! Finds the writer of a value: registers carry its id, and list elements are unique.

use std::collections::HashMap;

use crate::history::{History, Key, Op, Outcome, Value};

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The row is absent, so there is no writer.
    Absence,
    /// No transaction wrote the value to this row.
    Unwritten,
    /// The transaction with this id, which failed.
    Failed(u64),
    /// The transaction with this id, which replaced the value itself.
    Replaced(u64),
    /// The transaction with this id, at this timestamp if it is known.
    At(u64, Option<u64>),
}

/// The writers of all values of a history.
#[derive(Debug)]
pub(super) struct Writers {
    places: HashMap<u64, usize>,
    elements: HashMap<(Key, u64), usize>,
}

impl Writers {
    pub fn from_history(history: &History) -> Self {
        let (mut places, mut elements) = (HashMap::new(), HashMap::new());
        for (place, transaction) in history.transactions.iter().enumerate() {
            places.insert(transaction.id, place);
            for op in &transaction.ops {
                if let Op::Append { key, element } = op {
                    elements.insert((*key, *element), place);
                }
            }
        }
        Self { places, elements }
    }

    /// The place of the transaction that the value names as its writer.
    pub fn place(&self, key: Key, value: Option<&Value>) -> Option<usize> {
        match value? {
            Value::Register { by, .. } => self.places.get(by).copied(),
            Value::List(list) => self.elements.get(&(key, *list.last()?)).copied(),
            Value::Broken(_) => None,
        }
    }

    /// The origin of a value of a row.
    pub fn origin(&self, history: &History, key: Key, value: Option<&Value>) -> Origin {
        let Some(value) = value else {
            return Origin::Absence;
        };
        let Some(place) = self.place(key, Some(value)) else {
            return Origin::Unwritten;
        };
        let writer = &history.transactions[place];
        let mut wrote = false;
        let mut last = false;
        for op in &writer.ops {
            let (written, same) = match (op, value) {
                (
                    Op::Write {
                        key,
                        value: Some(v),
                    },
                    _,
                ) => (*key, v == value),
                (Op::Change { key }, _) => (*key, true),
                (Op::Append { key, element }, Value::List(list)) => {
                    (*key, list.last() == Some(element))
                }
                _ => continue,
            };
            // Only the last write of a transaction to the row can be seen by others.
            if written == key {
                (wrote, last) = (wrote || same, same);
            }
        }
        match (wrote, last) {
            (false, _) => Origin::Unwritten,
            _ if writer.outcome == Outcome::Fail => Origin::Failed(writer.id),
            (_, false) => Origin::Replaced(writer.id),
            _ => Origin::At(writer.id, writer.timestamp),
        }
    }
}

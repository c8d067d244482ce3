//! What clients asked and what they were answered. FORMAT.md describes the file.
//!
//! A client writes that it begins before it sends anything, its writes before it sends them, its
//! reads once they are answered, and the outcome last; so whatever dies, a history claims no more
//! than is known.

mod event;
mod file;
mod jepsen;
mod transaction;
mod value;

use std::collections::HashMap;

pub use event::{Event, Lookup, Op, Outcome, Scan, What};
pub use transaction::Transaction;
pub(crate) use value::shown;
pub use value::{Key, Value};

/// The transactions of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Ordered by the moment they began.
    pub transactions: Vec<Transaction>,
}

/// Why something is not a history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// An event does not belong where it stands.
    #[error("event {at} of the history, transaction {transaction}: {reason}")]
    Event {
        /// Counted from 1, the header left out.
        at: usize,
        /// The transaction.
        transaction: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// The file cannot be read or written.
    #[error("cannot {action} history {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A line of the file does not belong to a history.
    #[error("history {path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: std::path::PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

impl History {
    /// Puts the transactions of `events` together. Events of one transaction stand in their order;
    /// those of different ones may be mixed in any way.
    ///
    /// # Errors
    /// An event without a beginning, two beginnings, something after the end, or two different
    /// stamps.
    pub fn of(events: &[Event]) -> Result<Self, HistoryError> {
        let mut places = HashMap::new();
        let mut transactions: Vec<Transaction> = Vec::new();
        for (at, event) in events.iter().enumerate() {
            let wrong = |reason| HistoryError::Event {
                at: at + 1,
                transaction: event.transaction,
                reason,
            };
            if let What::Begin { process } = event.what {
                if places
                    .insert(event.transaction, transactions.len())
                    .is_some()
                {
                    return Err(wrong("it began before"));
                }
                transactions.push(Transaction::new(event.transaction, process, event.at_ns));
                continue;
            }
            let Some(&place) = places.get(&event.transaction) else {
                return Err(wrong("it has not begun"));
            };
            transactions[place].take(event).map_err(wrong)?;
        }
        transactions.sort_by_key(|transaction| (transaction.begin_ns, transaction.id));
        Ok(Self { transactions })
    }

    /// The events that make this history, transaction by transaction.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.transactions.iter().flat_map(Transaction::events)
    }

    /// How many ended in a way.
    pub fn count(&self, outcome: Outcome) -> usize {
        let ended = |t: &&Transaction| t.outcome == outcome;
        self.transactions.iter().filter(ended).count()
    }
}

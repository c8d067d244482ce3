//! What clients requested and what they were answered. docs/formats/txn-history.md describes the
//! file.
//!
//! A client records that it begins before it sends anything, its writes before it sends them, its
//! reads once they are answered, and the outcome last. So a history never claims more than is
//! known, whatever process dies.

mod elle;
mod event;
mod file;
mod transaction;
mod value;

use std::collections::HashMap;

pub use elle::{ElleHistory, Part};
pub use event::{Event, Lookup, Op, Outcome, Scan, What};
pub use transaction::Transaction;
pub(crate) use value::shown;
pub use value::{Key, Value};

/// The transactions of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The transactions, ordered by the moment at which they began.
    pub transactions: Vec<Transaction>,
}

/// The reason for which something is not a history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// An event cannot come at this point of its transaction.
    #[error("event {at} of the history, transaction {transaction}: {reason}")]
    Event {
        /// The number of the event, counted from 1 without the header.
        at: usize,
        /// The id of its transaction.
        transaction: u64,
        /// Which event is missing or repeated.
        reason: &'static str,
    },
    /// The file could not be read or written.
    #[error("cannot {action} history {path}: {source}")]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The path of the history.
        path: std::path::PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// A line of the file is not an event.
    #[error("history {path}, line {line}: {reason}")]
    Line {
        /// The path of the history.
        path: std::path::PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// What is wrong with the line.
        reason: String,
    },
}

impl History {
    /// Builds the transactions from `events`. Events of one transaction must be in order, while
    /// events of different transactions may be mixed in any way.
    ///
    /// # Errors
    /// An event before the beginning or after the end of its transaction, two beginnings, or two
    /// different timestamps.
    pub fn from_events(events: &[Event]) -> Result<Self, HistoryError> {
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
            transactions[place].apply(event).map_err(wrong)?;
        }
        transactions.sort_by_key(|transaction| (transaction.begin_ns, transaction.id));
        Ok(Self { transactions })
    }

    /// The events of this history, transaction by transaction.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.transactions.iter().flat_map(Transaction::events)
    }

    /// How many transactions had this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        let ended = |t: &&Transaction| t.outcome == outcome;
        self.transactions.iter().filter(ended).count()
    }
}

//! What was asked and what was answered, in the order in which the checker received it. A history
//! is append-only.
//!
//! A producer writes that it will send before it sends, and the outcome after. So whatever kills
//! it, the history never has an outcome without a question, and a question without an outcome means
//! that the outcome is unknown. Consumers write what they were given before they commit it.

mod event;
mod file;

pub use event::{Commit, Delivery, Event, QueueClaim, What};

/// All events of a run, up to a bound.
#[derive(Debug)]
pub struct History {
    events: Vec<Event>,
    events_max: usize,
}

/// Why an event could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The bound is reached: make the run shorter or slower.
    #[error(
        "the history holds {events_max} events, which is its bound: make the run shorter or its rate lower"
    )]
    Full {
        /// How many events the history may hold.
        events_max: usize,
    },
    /// The file with a history cannot be read or written.
    #[error("cannot {action} history {path}: {source}")]
    Io {
        /// What was tried, as a verb: read or write.
        action: &'static str,
        /// The path of the history.
        path: std::path::PathBuf,
        /// Why the system refused it.
        source: std::io::Error,
    },
    /// A line of the file is not an event.
    #[error("history {path}, line {line}: {reason}")]
    Line {
        /// The path of the history.
        path: std::path::PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with the line.
        reason: String,
    },
}

impl History {
    /// An empty history of at most `events_max` events (about 72 bytes each).
    pub fn new(events_max: usize) -> Self {
        Self {
            events: Vec::new(),
            events_max,
        }
    }

    /// Adds an event. A full history refuses: a check that forgets would prove nothing.
    pub fn push(&mut self, event: Event) -> Result<(), HistoryError> {
        if self.events.len() >= self.events_max {
            return Err(HistoryError::Full {
                events_max: self.events_max,
            });
        }
        self.events.push(event);
        Ok(())
    }

    /// All events in the order in which they were recorded.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}

//! A whole run: servers, clients, faults, and the judgement.

mod clients;
mod drain;
mod drive;
mod inject;
mod judge;
mod nodes;
mod options;
mod outcome;
mod readings;
mod recorder;
mod sampling;
mod servers;
mod soak;

pub use drive::run;
pub use dyno_soak::Trend;
pub use options::{Mode, Options};
pub use outcome::Outcome;
pub use recorder::Recorder;
pub use soak::{Sample, Soaked};

use crate::child::SpawnError;
use crate::history::HistoryError;
use crate::nemesis::BallastError;

/// The reason why a run came to no judgement.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A server could not be made, reached or brought up again.
    #[error(transparent)]
    Server(#[from] dyno_postgres::PgError),
    /// The log or the queue could not be made or read.
    #[error("cannot {action}: {source}")]
    Log {
        /// What was tried, as a verb and its object.
        action: &'static str,
        /// What the engine said.
        source: dyno_pubsub::Error,
    },
    /// The proxy could not listen.
    #[error(transparent)]
    Proxy(#[from] dyno_net::NetError),
    /// A client could not be started or ended.
    #[error(transparent)]
    Client(#[from] SpawnError),
    /// The disk could not be filled or emptied.
    #[error(transparent)]
    Ballast(#[from] BallastError),
    /// The history could not be written.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A process of the run could not be signalled.
    #[error("cannot signal {name}: {source}")]
    Signal {
        /// The name of the process.
        name: String,
        /// Why the system refused it.
        source: std::io::Error,
    },
    /// The options cannot work together.
    #[error("the check cannot run: {0}")]
    Options(String),
    /// Nothing was acknowledged any more, so the system did not come back.
    #[error("nothing was acknowledged for {waited_s} s {after}; {troubles}")]
    Stuck {
        /// How long it was waited for, in seconds.
        waited_s: u64,
        /// The fault or phase after which it happened.
        after: String,
        /// What the server is doing, and which broker holds each partition.
        troubles: String,
    },
}

impl RunError {
    fn log(action: &'static str) -> impl FnOnce(dyno_pubsub::Error) -> Self {
        move |source| Self::Log { action, source }
    }
}

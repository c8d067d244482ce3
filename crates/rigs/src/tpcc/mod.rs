//! TPC-C's transactions with a clock beside them, for the command and for suites.

mod asked;
mod engine;
mod functions;
mod measured;
mod records;
mod workload;

pub use functions::functions;
pub use measured::{Measured, OfKind, measure};
pub(crate) use workload::run;

/// Why an invocation failed.
#[derive(Debug, thiserror::Error)]
pub enum TpccError {
    /// The engine said no.
    #[error(transparent)]
    Engine(#[from] dyno_txn_api::Error),
    /// A PostgreSQL of its own could not be made or run.
    #[error(transparent)]
    Postgres(#[from] crate::pubsub::FlowError),
    /// A latency could not be counted.
    #[error(transparent)]
    Measure(#[from] dyno_measure::MeasureError),
    /// A server could not be started.
    #[error("{0}")]
    Server(String),
    /// The database is not what the transactions should have made of it.
    #[error("there is no throughput: {0}")]
    Wrong(String),
}

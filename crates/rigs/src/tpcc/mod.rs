//! Runs TPC-C transactions and times them, for the command and for suites.

mod engine;
mod functions;
mod measured;
mod params;
mod records;
mod workload;

use dyno_tpcc::transactions;
use dyno_txn_api::Procedures;
use dyno_txn_open::DatabaseOptions;

pub use measured::{Measured, OfKind, measure};
pub(crate) use workload::run;

/// The options of a database on which TPC-C's transactions can be called: they run in this process,
/// or as functions of a server with PostgreSQL's protocol.
///
/// # Errors
/// If two procedures have one name.
pub fn database_options() -> dyno_txn_api::Result<DatabaseOptions> {
    let mut procedures = Procedures::new();
    transactions::register(&mut procedures)?;
    Ok(DatabaseOptions {
        procedures,
        functions: functions::functions(),
        ..DatabaseOptions::default()
    })
}

/// Why an invocation failed, or its result does not count.
#[derive(Debug, thiserror::Error)]
pub enum TpccError {
    /// The transaction engine returned an error.
    #[error(transparent)]
    Engine(#[from] dyno_txn_api::Error),
    /// A private PostgreSQL server could not be started or used.
    #[error(transparent)]
    Postgres(#[from] crate::pubsub::FlowError),
    /// A latency could not be counted.
    #[error(transparent)]
    Measure(#[from] dyno_measure::MeasureError),
    /// A server could not be started.
    #[error("{0}")]
    Server(String),
    /// The database does not hold what the committed transactions must have left.
    #[error("there is no throughput: {0}")]
    Wrong(String),
}

impl From<TpccError> for crate::RigError {
    fn from(error: TpccError) -> crate::RigError {
        crate::RigError::Workload(error.into())
    }
}

//! Why a rig could not do what a suite asked for.

use std::path::PathBuf;

/// Why a workload could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// The suite names a workload that no rig has.
    #[error("no workload is called `{0}`; there are: version, {known}", known = crate::workloads::names())]
    Unknown(String),
    /// The suite hands a parameter that the workload cannot use.
    #[error("parameter `{name}`: {reason}")]
    Param {
        /// The parameter.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The ingest engine failed.
    #[error(transparent)]
    Ingest(#[from] dyno_ingest::Error),
    /// A ClickHouse server did not do what it should.
    #[error(transparent)]
    ClickHouse(#[from] dyno_ingest_clickhouse::Error),
    /// Another program failed.
    #[error("{program}: {reason}")]
    Program {
        /// The program.
        program: &'static str,
        /// How it ended.
        reason: String,
    },
    /// The TPC-H engine failed.
    #[error(transparent)]
    Tpch(#[from] dyno_tpch_files::Error),
    /// Messages did not flow as they should.
    #[error(transparent)]
    Flow(#[from] crate::pubsub::FlowError),
    /// Transactions did not run as they should.
    #[error(transparent)]
    Transactions(#[from] crate::txn::K2Error),
    /// Transactions of TPC-C did not do what they should.
    #[error(transparent)]
    Tpcc(#[from] crate::tpcc::TpccError),
    /// An endpoint of a language model could not be measured.
    #[error(transparent)]
    Llm(#[from] crate::llm::LlmError),
    /// Pages could not be made, kept or read.
    #[error(transparent)]
    Pages(#[from] crate::pages::PagesError),
    /// No protocol of that name is spoken here.
    #[error("no peer is called `{0}` here; there are: {known}", known = crate::peers::names())]
    Peer(String),
    /// An archive is not in the table as it should be.
    #[error("{}: {reason}", path.display())]
    NotLoaded {
        /// The archive.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A table's file could not be read back.
    #[error("{}: {reason}", path.display())]
    ReadBack {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The SQL engine is not there or failed.
    #[error("{0}")]
    Sql(String),
    /// A file of the scratch directory could not be moved or looked at.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A reply holds a value that JSON cannot express, or is not JSON.
    #[error("a reply is not JSON: {0}")]
    Reply(#[from] serde_json::Error),
}

impl RigError {
    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> RigError {
        RigError::Io {
            path: path.into(),
            source,
        }
    }
}

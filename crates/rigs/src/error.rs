//! Why a rig could not do what a suite asked for.

use std::path::PathBuf;

/// Why a workload could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// The suite names a workload that no rig has, or `--speak-as` a peer that no rig stands in
    /// for.
    #[error(transparent)]
    Unknown(dyno_suite::Error),
    /// The suite hands a parameter that the workload cannot use.
    #[error("parameter `{name}`: {reason}")]
    Param {
        /// The parameter's name, as the suite spells it.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The ingest engine returned an error while it generated or loaded archives.
    #[error(transparent)]
    Ingest(#[from] dyno_ingest::Error),
    /// A ClickHouse server did not do what it should.
    #[error(transparent)]
    ClickHouse(#[from] dyno_ingest_clickhouse::Error),
    /// A program that a rig ran, other than this one, failed.
    #[error("{program}: {reason}")]
    Program {
        /// The name of the program that failed.
        program: &'static str,
        /// Its exit status or stderr, or why it could not be started.
        reason: String,
    },
    /// A server or a client of a workload could not be started, or ended when it should not.
    #[error(transparent)]
    Process(#[from] crate::process::ProcessError),
    /// The TPC-H engine could not write its files.
    #[error(transparent)]
    Tpch(#[from] dyno_tpch_files::Error),
    /// A workload failed, or its result does not count. Boxed, because the modules of workloads use
    /// this type, and it would otherwise use theirs.
    #[error(transparent)]
    Workload(Box<dyn std::error::Error + Send + Sync>),
    /// An archive was refused, or the table does not have all its rows.
    #[error("{}: {reason}", path.display())]
    NotLoaded {
        /// The path of the archive, or of the table.
        path: PathBuf,
        /// What the engine reported, or how the table differs.
        reason: String,
    },
    /// A table's file could not be read back.
    #[error("{}: {reason}", path.display())]
    ReadBack {
        /// The file that the independent reader could not read.
        path: PathBuf,
        /// The message of the reader that failed.
        reason: String,
    },
    /// A thread of a workload panicked.
    #[error("a thread of the workload panicked")]
    Panicked,
    /// The SQL engine is not built, or it failed.
    #[error("{0}")]
    Sql(String),
    /// A file of the scratch directory could not be moved or looked at.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory of the failed call.
        path: PathBuf,
        /// The error that the operating system returned.
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

//! Errors of a server, its programs and its directory. No variant holds a password.

use std::io;
use std::path::{Path, PathBuf};

use crate::class::{Class, describe};

/// A failed operation on a PostgreSQL installation, cluster or connection.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    /// No server was found on this machine: install one, name one, or use `--dsn`.
    #[error(
        "no PostgreSQL server found (looked in {looked}): install one with 'apt-get install postgresql' \
         (Debian, Ubuntu) or 'dnf install postgresql-server' (Fedora), name the folder of its programs \
         in DYNO_PG_BIN, or use a running server with --dsn"
    )]
    NotFound {
        /// The directories that were searched.
        looked: String,
    },
    /// A named installation cannot be used: repair it, or name another.
    #[error("PostgreSQL in {path} is of no use: {reason}")]
    Unusable {
        /// The directory that was named.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// All servers that were found are too old or too new: install a version between.
    #[error(
        "found only {found}, and versions 15 to 18 are supported: install one of these, or name it in DYNO_PG_BIN"
    )]
    Unsupported {
        /// The versions found, with their directories.
        found: String,
    },
    /// The data needs another major version: install that one. Nothing is upgraded automatically.
    #[error(
        "{dir} was made by PostgreSQL {data}, and the programs found are of {found}: install PostgreSQL {data}"
    )]
    Major {
        /// The directory of the cluster concerned.
        dir: PathBuf,
        /// The major version that made the data.
        data: u32,
        /// The versions that were found instead.
        found: String,
    },
    /// There is no user that the server could run as: name one.
    #[error("PostgreSQL cannot run as user {name:?}: {reason}")]
    User {
        /// Name of the user that was requested.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server's user cannot enter the directory: open it, or use another.
    #[error(
        "user {user:?}, who runs PostgreSQL, may not enter {path}: 'chmod o+x' it, or take another directory"
    )]
    Unreachable {
        /// The user that runs the server.
        user: String,
        /// The first directory on the path that the user may not enter.
        path: PathBuf,
    },
    /// A call of the file system failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The operation that failed, as a verb.
        action: &'static str,
        /// The file or directory of the operation.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// The path has characters that the server's own files cannot hold: use another.
    #[error("{dir:?} is not a name for a cluster: it must be UTF-8 without control characters")]
    Name {
        /// The directory that was named.
        dir: PathBuf,
    },
    /// Another process owns the cluster: stop that process, or connect to it.
    #[error("{dir} is in use by {holder}")]
    InUse {
        /// The directory of the cluster concerned.
        dir: PathBuf,
        /// The process that owns it, as its lock file names it.
        holder: String,
    },
    /// The directory holds something else: use an empty or a new one.
    #[error(
        "{dir} is not empty and not a cluster of dyno (it has no dyno-cluster.json): {found} is in it"
    )]
    NotACluster {
        /// The directory that was named.
        dir: PathBuf,
        /// The name of one entry in it.
        found: String,
    },
    /// The cluster's own file is damaged: restore it. The data has not been touched.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// Path of the file that is damaged.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A later dyno made the cluster: use that version.
    #[error(
        "{path} has version {version}, and this program knows versions up to {known}: use a later dyno"
    )]
    Newer {
        /// The file with the version.
        path: PathBuf,
        /// The version that the file has.
        version: u32,
        /// The latest version that this program knows.
        known: u32,
    },
    /// A standby was promoted in place of this cluster: rebuild it as a standby.
    #[error(
        "{dir} is a former primary, replaced by {by}: it may not start as it is; rebuild it as a standby"
    )]
    Deposed {
        /// Directory of the cluster that was replaced.
        dir: PathBuf,
        /// The address of the new primary.
        by: String,
    },
    /// One of PostgreSQL's programs failed.
    #[error("{program} failed ({status}): {output}")]
    Program {
        /// Path of the program that was run.
        program: PathBuf,
        /// Its exit status, or why it did not run.
        status: String,
        /// What it printed before it ended.
        output: String,
    },
    /// The server did not start; its log says why.
    #[error("the server of {dir} did not start: {reason}; its log {log} ends with:\n{tail}")]
    Start {
        /// The directory of the cluster concerned.
        dir: PathBuf,
        /// How the attempt to start it ended.
        reason: String,
        /// Path of the server's log file.
        log: PathBuf,
        /// The last lines that this start wrote to the log.
        tail: String,
    },
    /// Processes of the cluster did not end in time.
    #[error("the server of {dir} did not stop: {reason}")]
    Stop {
        /// The directory of the cluster concerned.
        dir: PathBuf,
        /// Which processes remain, or why they could not be signalled.
        reason: String,
    },
    /// No server of this cluster is running: open it first.
    #[error("no server of {dir} is running")]
    NotRunning {
        /// The directory of the cluster concerned.
        dir: PathBuf,
    },
    /// A connection string that cannot be used: correct it.
    #[error("the connection string is of no use: {reason}")]
    Dsn {
        /// What is wrong with it.
        reason: String,
    },
    /// Certificates that cannot be used.
    #[error("cannot use TLS for {target}: {reason}")]
    Tls {
        /// The server, without a password.
        target: String,
        /// Which certificate is unusable, and why.
        reason: String,
    },
    /// No connection could be made; nothing was sent to the server.
    #[error("cannot connect to {target}: {}", describe(.source))]
    Connect {
        /// The server, without a password.
        target: String,
        /// The stable code, and whether a retry is safe.
        class: Class,
        /// The error that the driver returned.
        source: Box<postgres::Error>,
    },
    /// A statement failed, or its connection did.
    #[error("cannot {action}: {}", describe(.source))]
    Statement {
        /// What the statement was for.
        action: String,
        /// The stable code, and whether a retry is safe.
        class: Class,
        /// The error that the driver returned.
        source: Box<postgres::Error>,
    },
    /// A standby is not in the state that the call needs.
    #[error("standby {name:?}: {reason}")]
    Standby {
        /// The name that the standby was made with.
        name: String,
        /// What is wrong with the standby or its state.
        reason: String,
    },
}

impl PgError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    pub(crate) fn statement(action: impl Into<String>) -> impl FnOnce(postgres::Error) -> Self {
        let action = action.into();
        move |source| Self::Statement {
            action,
            class: Class::from_error(&source),
            source: Box::new(source),
        }
    }

    /// The class of an error that a server or connection caused; `None` for local errors.
    pub fn class(&self) -> Option<&Class> {
        match self {
            Self::Connect { class, .. } | Self::Statement { class, .. } => Some(class),
            _ => None,
        }
    }
}

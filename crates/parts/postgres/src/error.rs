//! What can go wrong with a server, its programs and its directory. No variant holds a password.

use std::io;
use std::path::{Path, PathBuf};

use crate::class::{Class, describe};

/// A failed operation on a PostgreSQL installation, cluster or connection.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    /// There is no server on this machine: install one, name one, or use `--dsn`.
    #[error(
        "no PostgreSQL server found (looked in {looked}): install one with 'apt-get install postgresql' \
         (Debian, Ubuntu) or 'dnf install postgresql-server' (Fedora), name the folder of its programs \
         in DYNO_PG_BIN, or use a running server with --dsn"
    )]
    NotFound {
        /// The places.
        looked: String,
    },
    /// A named installation cannot be used: mend it, or name another.
    #[error("PostgreSQL in {path} is of no use: {reason}")]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// All that was found is too old or too new: install a version between.
    #[error(
        "found only {found}, and versions 15 to 18 are supported: install one of these, or name it in DYNO_PG_BIN"
    )]
    Unsupported {
        /// Versions with their folders.
        found: String,
    },
    /// The data needs another major version: install that one; nothing is upgraded behind your
    /// back.
    #[error(
        "{dir} was made by PostgreSQL {data}, and the programs found are of {found}: install PostgreSQL {data}"
    )]
    Major {
        /// The cluster.
        dir: PathBuf,
        /// Its major version.
        data: u32,
        /// What was found.
        found: String,
    },
    /// No user that the server could run as: name one.
    #[error("PostgreSQL cannot run as user {name:?}: {reason}")]
    User {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server's user cannot get at the directory: open it, or take another.
    #[error(
        "user {user:?}, who runs PostgreSQL, may not enter {path}: 'chmod o+x' it, or take another directory"
    )]
    Unreachable {
        /// The user.
        user: String,
        /// The first directory that is closed.
        path: PathBuf,
    },
    /// The file system said no.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A name that the server's own files cannot hold: take another.
    #[error("{dir:?} is not a name for a cluster: it must be UTF-8 without control characters")]
    Name {
        /// The directory.
        dir: PathBuf,
    },
    /// Another process owns the cluster already: stop that process, or connect to it.
    #[error("{dir} is in use by {holder}")]
    InUse {
        /// The cluster.
        dir: PathBuf,
        /// The process.
        holder: String,
    },
    /// The directory has something else in it: take an empty or a new one.
    #[error(
        "{dir} is not empty and not a cluster of dyno (it has no dyno-cluster.json): {found} is in it"
    )]
    NotACluster {
        /// The directory.
        dir: PathBuf,
        /// One of the things in it.
        found: String,
    },
    /// The cluster's own file is damaged: restore it; the data is untouched.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The cluster was made by a later dyno: use that one.
    #[error(
        "{path} has version {version}, and this program knows versions up to {known}: use a later dyno"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The latest that is known.
        known: u32,
    },
    /// A standby was promoted in this one's place: rebuild it as a standby.
    #[error(
        "{dir} is a former primary, replaced by {by}: it may not start as it is; rebuild it as a standby"
    )]
    Deposed {
        /// The cluster.
        dir: PathBuf,
        /// Who took its place.
        by: String,
    },
    /// One of PostgreSQL's programs failed.
    #[error("{program} failed ({status}): {output}")]
    Program {
        /// Its path.
        program: PathBuf,
        /// How it ended.
        status: String,
        /// What it said.
        output: String,
    },
    /// The server did not come up; its log says why.
    #[error("the server of {dir} did not start: {reason}; its log {log} ends with:\n{tail}")]
    Start {
        /// The cluster.
        dir: PathBuf,
        /// What happened.
        reason: String,
        /// The log.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// Processes of the cluster did not end.
    #[error("the server of {dir} did not stop: {reason}")]
    Stop {
        /// The cluster.
        dir: PathBuf,
        /// What happened.
        reason: String,
    },
    /// No server of this cluster is running: open it first.
    #[error("no server of {dir} is running")]
    NotRunning {
        /// The cluster.
        dir: PathBuf,
    },
    /// A connection string that cannot be used: mend it.
    #[error("the connection string is of no use: {reason}")]
    Dsn {
        /// What is wrong with it.
        reason: String,
    },
    /// Certificates that cannot be used.
    #[error("cannot use TLS for {target}: {reason}")]
    Tls {
        /// The server.
        target: String,
        /// What is wrong.
        reason: String,
    },
    /// No connection came about; nothing was asked of the server.
    #[error("cannot connect to {target}: {}", describe(.source))]
    Connect {
        /// The server.
        target: String,
        /// What it means.
        class: Class,
        /// What happened.
        source: Box<postgres::Error>,
    },
    /// A statement failed.
    #[error("cannot {action}: {}", describe(.source))]
    Statement {
        /// What was tried.
        action: String,
        /// What it means.
        class: Class,
        /// What happened.
        source: Box<postgres::Error>,
    },
    /// A standby did not do what it should.
    #[error("standby {name:?}: {reason}")]
    Standby {
        /// Its name.
        name: String,
        /// What is wrong.
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
            class: Class::of(&source),
            source: Box::new(source),
        }
    }

    /// What the error means for a retry, where a server was asked; `None` for everything local.
    pub fn class(&self) -> Option<&Class> {
        match self {
            Self::Connect { class, .. } | Self::Statement { class, .. } => Some(class),
            _ => None,
        }
    }
}

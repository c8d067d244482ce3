//! Errors of a server, and what to do about each. No variant holds a password.

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong. With any variant the table is as it was before the archive, or holds all of
/// it. The next load of the same archive finds out which, and completes it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not an address: correct it.
    #[error("the address of the table is of no use: {reason}")]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// No answer arrived: start the server, or repair the connection to it. A retry is safe.
    #[error("cannot {action}: no answer from {server}: {reason}")]
    Unreachable {
        /// Host and port of the server.
        server: String,
        /// What the request was for.
        action: String,
        /// The cause of the last failed attempt.
        reason: String,
    },
    /// Wrong or expired credentials: CLICKHOUSE_PASSWORD, --password-file, the user in the address.
    #[error("{server} does not accept the credentials of user {user} (code {code})")]
    Credentials {
        /// Host and port of the server.
        server: String,
        /// The user that the server refused.
        user: String,
        /// ClickHouse's code, one of its `ErrorCodes.cpp`.
        code: i32,
    },
    /// The user lacks a privilege: grant it.
    #[error("cannot {action}: user {user} may not on {server}: {message} (code {code})")]
    Permission {
        /// Host and port of the server.
        server: String,
        /// What the request was for.
        action: String,
        /// The user that the server refused.
        user: String,
        /// ClickHouse's code, one of its `ErrorCodes.cpp`.
        code: i32,
        /// The server's message, shortened to one line.
        message: String,
    },
    /// The server's disk is full: make room there. A retry is safe.
    #[error("cannot {action}: the disk of {server} is full: {message} (code {code})")]
    DiskFull {
        /// Host and port of the server.
        server: String,
        /// What the request was for.
        action: String,
        /// ClickHouse's code, one of its `ErrorCodes.cpp`.
        code: i32,
        /// The server's message, shortened to one line.
        message: String,
    },
    /// The server was busy for longer than we wait: try again later. A retry is safe.
    #[error("cannot {action}: {server} is busy: {message} (code {code})")]
    Busy {
        /// Host and port of the server.
        server: String,
        /// What the request was for.
        action: String,
        /// ClickHouse's code, one of its `ErrorCodes.cpp`.
        code: i32,
        /// The server's message, shortened to one line.
        message: String,
    },
    /// The server returned an error of another kind.
    #[error("cannot {action}: {server} answered: {message} (code {code})")]
    Refused {
        /// Host and port of the server.
        server: String,
        /// What the request was for.
        action: String,
        /// ClickHouse's error code; 0 if the server gave none.
        code: i32,
        /// The server's message, shortened to one line.
        message: String,
    },
    /// The answer is malformed; something between us and the server may have made it.
    #[error("{server} answered to `{action}` what no ClickHouse answers: {found}")]
    Answer {
        /// Host and port of the server.
        server: String,
        /// What the request was for.
        action: String,
        /// The beginning of the answer.
        found: String,
    },
    /// The table has other columns or another engine than a load needs: load into another table.
    #[error("table {table} cannot take spots: {reason}")]
    Schema {
        /// Full name of the table.
        table: String,
        /// Which column or property does not fit.
        reason: String,
    },
    /// Rows of this archive belong in a partition that has rows of others, which a swap would
    /// remove.
    #[error(
        "partition {partition} of {table} has {rows} rows of {owner}, and a load replaces whole \
         partitions; drop it, or load into another table"
    )]
    Partition {
        /// Full name of the table.
        table: String,
        /// ClickHouse's ID of the partition.
        partition: String,
        /// Rows in the partition now.
        rows: u64,
        /// The archive that loaded them, or what else they may come from.
        owner: String,
    },
    /// The stage does not hold exactly what was sent, so nothing was put into the table. A retry is
    /// safe.
    #[error(
        "stage {stage} on {server} has {found} rows, {expected} were sent; load the archive again"
    )]
    Torn {
        /// Host and port of the server.
        server: String,
        /// Full name of the stage.
        stage: String,
        /// Rows that the stage has.
        found: u64,
        /// Rows that were sent to it.
        expected: u64,
    },
    /// Another load is running, or was killed on another machine or before a restart of a machine
    /// that cannot be told from another one.
    #[error(
        "{table} is being loaded by process {owner}; if that is gone for good, drop table {lock}"
    )]
    Locked {
        /// Full name of the table.
        table: String,
        /// The process that holds the lock.
        owner: String,
        /// The table that is the lock.
        lock: String,
    },
    /// The ledger cannot be used: a newer program wrote it.
    #[error("ledger {ledger}: {reason}")]
    Ledger {
        /// Full name of the ledger's table.
        ledger: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Something on this machine prevents the load, such as a thread that cannot start.
    #[error("cannot {action}: {reason}")]
    Here {
        /// The operation that failed, as a verb.
        action: &'static str,
        /// The reason the system gave.
        reason: String,
    },
    /// The work was stopped on request.
    #[error("stopped on request")]
    Stopped,
}

impl Error {
    /// Whether the same request may succeed later without anyone repairing something.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::Busy { .. })
    }
}

impl From<Error> for dyno_ingest::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Stopped => dyno_ingest::Error::Stopped,
            other => dyno_ingest::Error::Target(Box::new(other)),
        }
    }
}

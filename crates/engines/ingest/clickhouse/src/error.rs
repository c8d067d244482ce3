//! What can go wrong with a server, and what to do about it. No variant holds a password.

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong. Whatever the variant, the table is as it was before the archive, or holds it
/// whole; the next load of the same archive finds out and does what is left.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not an address: mend it.
    #[error("the address of the table is of no use: {reason}")]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// No answer came: start the server, or mend the way to it. Retry is safe.
    #[error("cannot {action}: no answer from {server}: {reason}")]
    Unreachable {
        /// The server.
        server: String,
        /// What was tried.
        action: String,
        /// What happened at the last attempt.
        reason: String,
    },
    /// Wrong or expired credentials: CLICKHOUSE_PASSWORD, --password-file, the user in the address.
    #[error("{server} does not accept the credentials of user {user} (code {code})")]
    Credentials {
        /// The server.
        server: String,
        /// Who was refused.
        user: String,
        /// ClickHouse's code.
        code: i32,
    },
    /// The user may not do it: grant it.
    #[error("cannot {action}: user {user} may not on {server}: {message} (code {code})")]
    Permission {
        /// The server.
        server: String,
        /// What was tried.
        action: String,
        /// Who was refused.
        user: String,
        /// ClickHouse's code.
        code: i32,
        /// The server's words.
        message: String,
    },
    /// The server's disk is full: make room there. Retry is safe.
    #[error("cannot {action}: the disk of {server} is full: {message} (code {code})")]
    DiskFull {
        /// The server.
        server: String,
        /// What was tried.
        action: String,
        /// ClickHouse's code.
        code: i32,
        /// The server's words.
        message: String,
    },
    /// The server is busy, and stayed so: try again later. Retry is safe.
    #[error("cannot {action}: {server} is busy: {message} (code {code})")]
    Busy {
        /// The server.
        server: String,
        /// What was tried.
        action: String,
        /// ClickHouse's code.
        code: i32,
        /// The server's words.
        message: String,
    },
    /// The server said no for another reason.
    #[error("cannot {action}: {server} answered: {message} (code {code})")]
    Refused {
        /// The server.
        server: String,
        /// What was tried.
        action: String,
        /// ClickHouse's code, 0 when it gave none.
        code: i32,
        /// The server's words.
        message: String,
    },
    /// The server's answer makes no sense; something between us and it may have made it.
    #[error("{server} answered to `{action}` what no ClickHouse answers: {found}")]
    Answer {
        /// The server.
        server: String,
        /// What was asked.
        action: String,
        /// What came.
        found: String,
    },
    /// The table has other columns or another engine than a load needs: load into another table.
    #[error("table {table} cannot take spots: {reason}")]
    Schema {
        /// The table.
        table: String,
        /// Why not.
        reason: String,
    },
    /// Rows of this archive lie in a partition with rows of others, which a swap would remove.
    #[error(
        "partition {partition} of {table} has {rows} rows of {owner}, and a load replaces whole \
         partitions; drop it, or load into another table"
    )]
    Partition {
        /// The table.
        table: String,
        /// The partition's ID.
        partition: String,
        /// Rows in it.
        rows: u64,
        /// The archive that brought them, or who else.
        owner: String,
    },
    /// The stage does not hold what was sent, so nothing of it was put into the table. Retry is
    /// safe.
    #[error(
        "stage {stage} on {server} has {found} rows, {expected} were sent; load the archive again"
    )]
    Torn {
        /// The server.
        server: String,
        /// The stage.
        stage: String,
        /// Rows found.
        found: u64,
        /// Rows sent.
        expected: u64,
    },
    /// Another load is at work, or was killed on another machine.
    #[error(
        "{table} is being loaded by process {owner}; if that is gone for good, drop table {lock}"
    )]
    Locked {
        /// The table.
        table: String,
        /// Who loads it.
        owner: String,
        /// The table that says so.
        lock: String,
    },
    /// The ledger cannot be used: a newer program wrote it.
    #[error("ledger {ledger}: {reason}")]
    Ledger {
        /// The ledger's table.
        ledger: String,
        /// What is wrong with it.
        reason: String,
    },
    /// This process cannot go on.
    #[error("cannot {action}: {reason}")]
    Here {
        /// What was tried.
        action: &'static str,
        /// Why not.
        reason: String,
    },
    /// The work was stopped on request.
    #[error("stopped on request")]
    Stopped,
}

impl Error {
    /// Whether the same request may be made again after a while, without a person doing something.
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

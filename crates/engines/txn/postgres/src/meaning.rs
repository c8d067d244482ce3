//! Translates errors of the server and of the connection to errors of a transaction.

use dyno_postgres::class::describe;
use dyno_postgres::{Class, PgError, Retry as PgRetry, postgres};
use dyno_txn_api::{Code, Error, Retry};

/// What was in flight when an error happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum During {
    /// A statement of a transaction that is not committed. If the connection is lost, it never will
    /// be.
    Transaction,
    /// A commit, or a statement that commits by itself. If the connection is lost, its outcome is
    /// unknown.
    Commit,
}

/// The front of the SQLSTATEs with which functions in the server raise errors of this interface.
/// The number of the code follows.
const OURS: &str = "DT";

/// Translates an error. `server` names the server for the message, without a password.
pub fn meaning(error: &postgres::Error, server: &str, during: During) -> Error {
    let text = format!("{server}: {}", describe(error));
    let Some(refusal) = error.as_db_error() else {
        return lost(error, text, during);
    };
    // The commit may have been done: SQLSTATE 40003 says so, and an error that ends the session may
    // come after it. By their classes some of them would pass for errors that are safe to retry.
    if Class::from_error(error).retry == PgRetry::Unknown {
        return lost(error, text, during);
    }
    let state = refusal.code().code();
    if let Some(number) = state.strip_prefix(OURS) {
        let code = number.parse().ok().and_then(Code::numbered);
        let code = code.unwrap_or(Code::Damaged);
        return Error::new(code, refusal.message());
    }
    let code = match state {
        "23505" => Code::AlreadyExists,
        "23502" => Code::BadRow,
        "42P01" | "3F000" => Code::NoSuchTable,
        "42883" => Code::NoSuchProcedure,
        "57014" => Code::Deadline,
        "42501" => Code::Denied,
        "53100" => Code::MemoryFull,
        // By class: rolled back, data that does not fit, out of a resource, not authenticated. The
        // last ones are handled like a lost connection.
        _ => match state.get(..2).unwrap_or_default() {
            "40" | "55" => Code::Conflict,
            "22" => Code::BadRow,
            "53" => Code::Overloaded,
            "28" => Code::Denied,
            "08" | "57" | "58" | "25" => return lost(error, text, during),
            _ => Code::BadArgument,
        },
    };
    Error::new(code, text)
}

/// Translates an error that ended the connection, or leaves open what was done.
fn lost(error: &postgres::Error, text: String, during: During) -> Error {
    match (Class::from_error(error).retry, during) {
        (PgRetry::Never, _) => Error::new(Code::BadArgument, text),
        (PgRetry::Unknown, During::Commit) => {
            let text = format!("a commit's answer was lost: {text}");
            Error::with_retry(Code::OutcomeUnknown, Retry::Unknown, text)
        }
        _ => Error::new(Code::Unavailable, text),
    }
}

/// Translates the error of a connection that could not be made.
pub fn not_connected(error: &PgError) -> Error {
    let code = match error {
        PgError::Dsn { .. } | PgError::Tls { .. } => Code::BadArgument,
        _ => match error.class().map(|class| class.code) {
            Some("denied") => Code::Denied,
            Some("unknown-database") => Code::BadArgument,
            Some("overloaded") => Code::Overloaded,
            _ => Code::Unavailable,
        },
    };
    Error::new(code, error)
}

//! What an error of the server or of a connection means: a stable code, and whether a retry is
//! safe.
//!
//! The danger is a commit whose outcome is unknown. A statement commits by itself unless the caller
//! opened a transaction, so whatever cuts a connection while a statement is under way is
//! [`Retry::Unknown`]: only a caller whose request can be recognised as a repetition may send it
//! again. SQLSTATE: PostgreSQL documentation, Appendix A.

use std::fmt;

use postgres::error::{Severity, SqlState};

/// Whether the same request may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Nothing was done; send it again, after a pause or to another server.
    Safe,
    /// It would fail again unless its cause is repaired first.
    Never,
    /// It may have been done: only an idempotent request may be sent again.
    Unknown,
}

/// The meaning of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// A stable name, such as `disk-full`; `application` for SQLSTATEs of class `DP`.
    pub code: &'static str,
    /// The server's five-character SQLSTATE; `None` if the error is not from the server.
    pub sqlstate: Option<String>,
    /// Whether the same request may be sent again.
    pub retry: Retry,
}

impl Class {
    /// Classifies an error of a statement on an open connection.
    pub fn from_error(error: &postgres::Error) -> Self {
        if let Some(refusal) = error.as_db_error() {
            let state = refusal.code().code();
            let (code, retry) = meaning(state);
            // Whatever ends the session may have come after the commit. A PANIC does when the log
            // cannot be written, and it can have any SQLSTATE.
            let ends_session = matches!(
                refusal.parsed_severity(),
                Some(Severity::Fatal | Severity::Panic)
            );
            let retry = if ends_session && state != SqlState::CANNOT_CONNECT_NOW.code() {
                Retry::Unknown
            } else {
                retry
            };
            return Self::new(code, Some(state), retry);
        }
        let source = std::error::Error::source(error);
        let wrong_type = source.is_some_and(|s| s.is::<postgres::types::WrongType>());
        let unsendable = source
            .and_then(|s| s.downcast_ref::<std::io::Error>())
            .is_some_and(|e| e.kind() == std::io::ErrorKind::InvalidInput);
        if wrong_type || unsendable {
            return Self::new("bad-argument", None, Retry::Never);
        }
        Self::new("outcome-unknown", None, Retry::Unknown)
    }

    /// Classifies an error from opening a connection, when no statement has been sent yet.
    pub fn of_connect(error: &postgres::Error) -> Self {
        match error.as_db_error() {
            Some(refusal) => {
                let state = refusal.code().code();
                let (code, retry) = meaning(state);
                let safe = retry == Retry::Unknown;
                let code = if safe { "server-lost" } else { code };
                Self::new(code, Some(state), if safe { Retry::Safe } else { retry })
            }
            None => {
                let source = std::error::Error::source(error);
                let from_network = error.is_closed()
                    || source.is_some_and(|s| s.downcast_ref::<std::io::Error>().is_some());
                if from_network {
                    Self::new("server-lost", None, Retry::Safe)
                } else {
                    Self::new("denied", None, Retry::Never)
                }
            }
        }
    }

    fn new(code: &'static str, sqlstate: Option<&str>, retry: Retry) -> Self {
        Self {
            code,
            sqlstate: sqlstate.map(str::to_owned),
            retry,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sqlstate {
            Some(state) => write!(f, "{} ({state})", self.code),
            None => f.write_str(self.code),
        }
    }
}

/// Code and retry of a SQLSTATE that answered a statement.
fn meaning(state: &str) -> (&'static str, Retry) {
    match state {
        "40001" | "40P01" | "55P03" => ("conflict", Retry::Safe),
        "40003" | "08007" | "57P01" | "57P02" => ("outcome-unknown", Retry::Unknown),
        "57P03" => ("server-lost", Retry::Safe),
        "57P05" => ("server-lost", Retry::Unknown),
        "57014" => ("cancelled", Retry::Safe),
        "53100" => ("disk-full", Retry::Safe),
        "25006" => ("not-primary", Retry::Safe),
        "42501" => ("denied", Retry::Never),
        "3D000" | "57P04" => ("unknown-database", Retry::Never),
        "XX001" | "XX002" => ("data-damaged", Retry::Never),
        "42883" | "42P01" | "3F000" => ("not-installed", Retry::Never),
        _ => match state.get(..2).unwrap_or("") {
            "DP" => ("application", Retry::Never),
            "08" => ("server-lost", Retry::Unknown),
            "28" => ("denied", Retry::Never),
            "40" => ("conflict", Retry::Safe),
            "53" => ("overloaded", Retry::Safe),
            "58" => ("server-io", Retry::Never),
            "22" => ("bad-argument", Retry::Never),
            _ => ("refused", Retry::Never),
        },
    }
}

/// The whole error in one line. The driver's own text leaves out the cause.
pub fn describe(error: &postgres::Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        let mut text = format!("{} ({})", refusal.message(), refusal.code().code());
        for more in [refusal.detail(), refusal.hint()].into_iter().flatten() {
            text.push_str("; ");
            text.push_str(more);
        }
        return text;
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_say_whether_a_retry_is_safe() {
        for (state, code, retry) in [
            ("40001", "conflict", Retry::Safe),
            ("40P01", "conflict", Retry::Safe),
            ("55P03", "conflict", Retry::Safe),
            ("53100", "disk-full", Retry::Safe),
            ("53300", "overloaded", Retry::Safe),
            ("57P01", "outcome-unknown", Retry::Unknown),
            ("57P03", "server-lost", Retry::Safe),
            ("08006", "server-lost", Retry::Unknown),
            ("DP003", "application", Retry::Never),
            ("28P01", "denied", Retry::Never),
            ("23505", "refused", Retry::Never),
            ("", "refused", Retry::Never),
        ] {
            assert_eq!(meaning(state), (code, retry), "{state}");
        }
    }
}

//! Why a statement was not answered, in words and with its code in PostgreSQL and in HTTP.

use std::fmt;

use datafusion::common::{DataFusionError, SchemaError};

use crate::error_text::plain;

/// What kind of refusal it is, on which a client decides what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The text is not a statement.
    Syntax,
    /// The table does not exist.
    NoTable,
    /// The column does not exist.
    NoColumn,
    /// The setting does not exist.
    NoSetting,
    /// The statement would change something.
    ReadOnly,
    /// The statement is valid, but not answered here.
    NotSupported,
    /// A value or a parameter does not fit.
    Value,
    /// The client cancelled it.
    Cancelled,
    /// It took longer than its time limit.
    TimedOut,
    /// It needs more memory than a statement may use.
    Memory,
    /// Its answer has more rows than an answer may have.
    TooManyRows,
    /// It has more operators than a statement may have.
    TooComplex,
    /// A message is not what the protocol says.
    Protocol,
    /// The client would send what it has in the clear.
    Unencrypted,
    /// There are as many connections as the server serves.
    TooManyConnections,
    /// The statements of a failed transaction are ignored until it ends.
    FailedTransaction,
    /// The table or the engine failed.
    Failed,
}

impl Kind {
    /// The code in Appendix A of PostgreSQL's documentation.
    pub fn sqlstate(self) -> &'static str {
        match self {
            Kind::Syntax => "42601",
            Kind::NoTable => "42P01",
            Kind::NoColumn => "42703",
            Kind::NoSetting => "42704",
            Kind::ReadOnly => "25006",
            Kind::NotSupported => "0A000",
            Kind::Value => "22023",
            // PostgreSQL has one code for both, which drivers take for a timeout of theirs, too.
            Kind::Cancelled | Kind::TimedOut => "57014",
            Kind::Memory => "53200",
            Kind::TooManyRows => "54000",
            Kind::TooComplex => "54001",
            Kind::Protocol => "08P01",
            Kind::Unencrypted => "28000",
            Kind::TooManyConnections => "53300",
            Kind::FailedTransaction => "25P02",
            Kind::Failed => "XX000",
        }
    }

    /// The status of an answer over HTTP (RFC 9110, section 15).
    pub fn status(self) -> u16 {
        match self {
            Kind::ReadOnly => 403,
            Kind::NoTable => 404,
            Kind::TimedOut | Kind::Cancelled => 408,
            // The question is valid, but answering it takes more than one client may use.
            Kind::Memory | Kind::TooManyRows => 413,
            Kind::TooManyConnections => 503,
            Kind::Failed => 500,
            _ => 400,
        }
    }
}

/// A refusal, with what is wrong and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of refusal it is.
    pub kind: Kind,
    /// What is wrong, for a person.
    pub message: String,
}

impl Refusal {
    /// A refusal of this kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// A table that cannot be opened, or another failure that is not the client's.
    pub fn failed(error: &anyhow::Error) -> Self {
        Self::new(Kind::Failed, crate::error_text::explain(error))
    }
}

impl From<DataFusionError> for Refusal {
    fn from(error: DataFusionError) -> Self {
        let message = plain(&error.strip_backtrace());
        let kind = match error.find_root() {
            DataFusionError::SQL(..) => Kind::Syntax,
            DataFusionError::NotImplemented(_) => Kind::NotSupported,
            DataFusionError::ResourcesExhausted(_) => Kind::Memory,
            DataFusionError::SchemaError(found, _) => match **found {
                SchemaError::FieldNotFound { .. } => Kind::NoColumn,
                _ => Kind::Value,
            },
            // A missing table is a planning error like any other, and only its text tells.
            DataFusionError::Plan(text) if text.contains("table '") => Kind::NoTable,
            DataFusionError::Plan(_) => Kind::Syntax,
            DataFusionError::Execution(_) | DataFusionError::ArrowError(..) => Kind::Value,
            _ => Kind::Failed,
        };
        Self::new(kind, message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

//! Errors with a stable code that says whether a retry is safe.

use std::fmt;

/// Whether the same transaction may be run again after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// It had no effect, so it may be run again.
    Safe,
    /// It would fail again, so the request has to change.
    Never,
    /// It may have been committed. Check before running it again.
    Unknown,
}

macro_rules! codes {
    ($($(#[$doc:meta])+ $variant:ident = $number:literal $name:literal $retry:ident,)+) => {
        /// The kinds of failure. Names and numbers are stable, so programs may compare them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])+ $variant,)+
        }

        impl Code {
            /// All kinds, in the order of their numbers.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// The stable name, such as `no-such-table`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)+
                }
            }

            /// The stable number, which messages contain.
            pub fn number(self) -> u8 {
                match self {
                    $(Code::$variant => $number,)+
                }
            }

            /// Whether a retry is safe, unless the error itself says otherwise.
            pub fn retry(self) -> Retry {
                match self {
                    $(Code::$variant => Retry::$retry,)+
                }
            }
        }
    };
}

codes! {
    /// Another transaction was in the way, and this one had no effect.
    Conflict = 1 "conflict" Safe,
    /// Another transaction aborted this one, or its client was silent for too long.
    Aborted = 2 "aborted" Safe,
    /// A commit was sent and its answer was lost. Either all of it took effect or nothing.
    OutcomeUnknown = 3 "outcome-unknown" Unknown,
    /// The deadline has passed, and the transaction was not committed.
    Deadline = 4 "deadline" Safe,
    /// The snapshot is older than what the engine keeps. A new transaction gets a newer one.
    TooOld = 5 "too-old" Safe,
    /// Queues or windows are full.
    Overloaded = 6 "overloaded" Safe,
    /// The memory bound is reached. Writes are refused, while reads and deletes continue.
    MemoryFull = 7 "memory-full" Safe,
    /// The engine cannot be reached or has stopped. Nothing was committed.
    Unavailable = 8 "unavailable" Safe,
    /// No table has this name or id.
    NoSuchTable = 9 "no-such-table" Never,
    /// The table has no secondary index with this name or number.
    NoSuchIndex = 10 "no-such-index" Never,
    /// No procedure with this name is registered in the engine.
    NoSuchProcedure = 11 "no-such-procedure" Never,
    /// A table with this name exists and has another definition.
    TableExists = 12 "table-exists" Never,
    /// A key, a value or a request is above the limits of [`crate::limits`].
    TooLarge = 13 "too-large" Never,
    /// [`crate::Change::Insert`] found a row under the key.
    AlreadyExists = 14 "already-exists" Never,
    /// [`crate::Change::Update`] found no row under the key.
    NotFound = 15 "not-found" Never,
    /// The value is not a row with the table's columns.
    BadRow = 16 "bad-row" Never,
    /// An argument makes no sense. The text says which one.
    BadArgument = 17 "bad-argument" Never,
    /// The engine cannot do this. The text says what it can do.
    NotSupported = 18 "not-supported" Never,
    /// One of the transaction's writes failed before, so it can only be rolled back.
    WriteFailed = 19 "write-failed" Never,
    /// The caller's own code aborted the transaction.
    UserAbort = 20 "user-abort" Never,
    /// A write in a transaction that was begun as read-only.
    ReadOnly = 21 "read-only" Never,
    /// The transaction has ended already.
    Finished = 22 "finished" Never,
    /// Bytes that arrived or were stored cannot be parsed.
    Damaged = 23 "damaged" Never,
    /// Bytes in a format of a later version of this program.
    NewerVersion = 24 "newer-version" Never,
    /// The token or certificate does not allow this.
    Denied = 25 "denied" Never,
}

impl Code {
    /// The kind with this name, if there is one.
    pub fn named(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }

    /// The kind with this number, if there is one.
    pub fn numbered(number: u8) -> Option<Code> {
        Code::ALL
            .iter()
            .copied()
            .find(|code| code.number() == number)
    }
}

/// A failure: its kind, whether to retry, and a sentence that names the object and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: Code,
    retry: Retry,
    text: String,
}

/// The result of the calls of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this kind. The kind decides whether a retry is safe.
    pub fn new(code: Code, text: impl fmt::Display) -> Self {
        Self::with_retry(code, code.retry(), text)
    }

    /// An error for which the caller knows whether a retry is safe.
    pub fn with_retry(code: Code, retry: Retry, text: impl fmt::Display) -> Self {
        Self {
            code,
            retry,
            text: text.to_string(),
        }
    }

    /// The error with which a caller's own code aborts its transaction, as 1% of TPC-C's New Orders
    /// do.
    pub fn user_abort(reason: impl fmt::Display) -> Self {
        Self::new(Code::UserAbort, reason)
    }

    /// The kind of failure, for programs to compare.
    pub fn kind(&self) -> Code {
        self.code
    }

    /// The stable name of the kind, such as `no-such-table`.
    pub fn code(&self) -> &'static str {
        self.code.name()
    }

    /// Whether the same transaction may be run again.
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// The sentence without the code.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.text, self.code.name())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_numbers_are_unique_and_lead_back() {
        let names: BTreeSet<_> = Code::ALL.iter().map(|code| code.name()).collect();
        let numbers: BTreeSet<_> = Code::ALL.iter().map(|code| code.number()).collect();
        assert_eq!(
            (names.len(), numbers.len()),
            (Code::ALL.len(), Code::ALL.len())
        );
        for &code in Code::ALL {
            assert_eq!(Code::named(code.name()), Some(code));
            assert_eq!(Code::numbered(code.number()), Some(code));
        }
        assert_eq!(Code::numbered(0), None);
    }

    #[test]
    fn an_error_says_its_code() {
        let error = Error::new(Code::NoSuchTable, "table `orders` does not exist");
        assert_eq!(
            error.to_string(),
            "table `orders` does not exist [no-such-table]"
        );
        assert_eq!(error.retry(), Retry::Never);
    }
}

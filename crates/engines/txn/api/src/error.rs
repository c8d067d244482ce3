//! What can go wrong, with a stable code and whether a retry is safe.

use std::fmt;

/// Whether the same transaction may be run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Nothing of it was done: run it again.
    Safe,
    /// It would fail again: change the request.
    Never,
    /// It may have been committed, or not: look before running it again.
    Unknown,
}

macro_rules! codes {
    ($($(#[$doc:meta])+ $variant:ident = $number:literal $name:literal $retry:ident,)+) => {
        /// The kinds of failure. Names and numbers are stable: programs may compare them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])+ $variant,)+
        }

        impl Code {
            /// All kinds.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)+
                }
            }

            /// The stable number, as it stands on the wire.
            pub fn number(self) -> u8 {
                match self {
                    $(Code::$variant => $number,)+
                }
            }

            /// Whether a retry is safe, unless the error says otherwise.
            pub fn retry(self) -> Retry {
                match self {
                    $(Code::$variant => Retry::$retry,)+
                }
            }
        }
    };
}

codes! {
    /// Another transaction was in the way; this one was not done.
    Conflict = 1 "conflict" Safe,
    /// The transaction was aborted by another one, or because its client was silent too long.
    Aborted = 2 "aborted" Safe,
    /// A commit was sent and its answer was lost: it was done whole, or not at all.
    OutcomeUnknown = 3 "outcome-unknown" Unknown,
    /// The time given for it has passed, and it was not committed.
    Deadline = 4 "deadline" Safe,
    /// The snapshot is older than what the engine keeps: begin again.
    TooOld = 5 "too-old" Safe,
    /// Queues or windows are full.
    Overloaded = 6 "overloaded" Safe,
    /// The memory bound is reached: writes are refused, reads and deletes go on.
    MemoryFull = 7 "memory-full" Safe,
    /// The engine is not there, or stopped; nothing was committed.
    Unavailable = 8 "unavailable" Safe,
    /// No such table.
    NoSuchTable = 9 "no-such-table" Never,
    /// No such secondary index.
    NoSuchIndex = 10 "no-such-index" Never,
    /// No procedure of this name is registered in the engine.
    NoSuchProcedure = 11 "no-such-procedure" Never,
    /// A table of this name exists and is defined in another way.
    TableExists = 12 "table-exists" Never,
    /// A key, a value or a request is larger than the limits of [`crate::limits`].
    TooLarge = 13 "too-large" Never,
    /// [`crate::Change::Insert`] found a row under the key.
    AlreadyExists = 14 "already-exists" Never,
    /// [`crate::Change::Update`] found no row under the key.
    NotFound = 15 "not-found" Never,
    /// A value is not a row of the table's columns.
    BadRow = 16 "bad-row" Never,
    /// An argument that makes no sense; the text says which.
    BadArgument = 17 "bad-argument" Never,
    /// The engine cannot do this; the text says what can.
    NotSupported = 18 "not-supported" Never,
    /// One of the transaction's writes failed earlier, so that it can only be rolled back.
    WriteFailed = 19 "write-failed" Never,
    /// The caller's own code gave the transaction up.
    UserAbort = 20 "user-abort" Never,
    /// A write in a transaction that was begun as read only.
    ReadOnly = 21 "read-only" Never,
    /// The transaction is over.
    Finished = 22 "finished" Never,
    /// Bytes that came in, or were stored, do not parse.
    Damaged = 23 "damaged" Never,
    /// A format of a later version of this program.
    NewerVersion = 24 "newer-version" Never,
    /// Not allowed: token or certificate.
    Denied = 25 "denied" Never,
}

impl Code {
    /// The kind with this name.
    pub fn named(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }

    /// The kind with this number.
    pub fn numbered(number: u8) -> Option<Code> {
        Code::ALL
            .iter()
            .copied()
            .find(|code| code.number() == number)
    }
}

/// A failure: what kind, whether to retry, and a sentence that names the object and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: Code,
    retry: Retry,
    text: String,
}

/// What this crate's calls return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failure of a kind, with the kind's own answer to whether a retry is safe.
    pub fn new(code: Code, text: impl fmt::Display) -> Self {
        Self::with_retry(code, code.retry(), text)
    }

    /// A failure of which is known whether a retry is safe.
    pub fn with_retry(code: Code, retry: Retry, text: impl fmt::Display) -> Self {
        Self {
            code,
            retry,
            text: text.to_string(),
        }
    }

    /// What a caller's own code returns to give its transaction up, as the 1% of New Orders do.
    pub fn user_abort(reason: impl fmt::Display) -> Self {
        Self::new(Code::UserAbort, reason)
    }

    /// The kind.
    pub fn kind(&self) -> Code {
        self.code
    }

    /// The kind's stable name, such as `no-such-table`.
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

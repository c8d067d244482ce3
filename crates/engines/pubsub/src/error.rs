//! What can go wrong, with a stable code and whether a retry is safe.

use std::fmt;

use dyno_postgres::{Class, PgError, class::describe, postgres};

pub use dyno_postgres::Retry;

macro_rules! codes {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal $retry:ident,)+) => {
        /// The kinds of failure. The names are stable: programs and other languages may compare
        /// them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])+ $variant,)+
        }

        impl Code {
            /// All kinds, in the order of their declaration.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// The name, which never changes once it was released.
            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)+
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
    /// The topic or the partition does not exist.
    UnknownTopic = "unknown-topic" Never,
    /// A record is larger than [`crate::record::RECORD_BYTES_MAX`].
    RecordTooLarge = "record-too-large" Never,
    /// The member does not own the partition at that generation any more. It drops what it has of
    /// the partition, whose messages are delivered again.
    WrongGeneration = "wrong-generation" Never,
    /// Another broker has taken the partition over.
    Fenced = "fenced" Never,
    /// A producer skipped sequences, or was silent so long that it was forgotten: take a new
    /// producer id.
    SequenceGap = "sequence-gap" Never,
    /// The offset is before the first record that retention has left, or after the end of the log.
    OffsetOutOfRange = "offset-out-of-range" Never,
    /// The tables were made by a later version of this program: use that one.
    NewerSchema = "newer-schema" Never,
    /// The topic has no such group.
    UnknownGroup = "unknown-group" Never,
    /// The member never joined, or its lease lapsed: join again.
    UnknownMember = "unknown-member" Never,
    /// The name is in use.
    NameTaken = "name-taken" Never,
    /// An argument cannot be used; the text says which and why.
    BadArgument = "bad-argument" Never,
    /// No queue has this name.
    UnknownQueue = "unknown-queue" Never,
    /// SQL cannot read compressed rows.
    Compressed = "compressed" Never,
    /// Stored or received bytes are not records, or their checksum is wrong.
    Damaged = "damaged" Never,
    /// The schema `pubsub` is not there: install it.
    NotInstalled = "not-installed" Never,
    /// The partition is on another cluster than the one that was asked.
    PlacedElsewhere = "placed-elsewhere" Never,
    /// The group has living members: stop them, or force it.
    GroupInUse = "group-in-use" Never,
    /// No space left for the server.
    DiskFull = "disk-full" Safe,
    /// The server cannot be reached, or the connection was lost before anything was sent.
    ServerLost = "server-lost" Safe,
    /// The request may have been carried out or not, because its answer is missing.
    OutcomeUnknown = "outcome-unknown" Unknown,
    /// Too much at once: buffers or connections are used up.
    Overloaded = "overloaded" Safe,
    /// Not allowed: password, token or privilege.
    Denied = "denied" Never,
    /// A lock or a concurrent change was in the way.
    Conflict = "conflict" Safe,
    /// The statement was cancelled, by an administrator or by a timeout of the server.
    Cancelled = "cancelled" Safe,
    /// The server is a standby.
    NotPrimary = "not-primary" Safe,
    /// The database does not exist.
    UnknownDatabase = "unknown-database" Never,
    /// The server found its files damaged.
    DataDamaged = "data-damaged" Never,
    /// The server's disk failed to read or write.
    ServerIo = "server-io" Never,
    /// The server refused for a reason that its text gives.
    Refused = "refused" Never,
    /// The time given for it has passed before anything was sent.
    TimedOut = "timed-out" Safe,
    /// The producer, consumer or connection was closed.
    Closed = "closed" Never,
}

impl Code {
    /// The kind with this name, as a broker sends it.
    pub fn named(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }
}

/// A failure: what kind, whether to retry, and a sentence that names the object and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} [{}]", .code.name())]
pub struct Error {
    code: Code,
    retry: Retry,
    text: String,
}

/// What this crate's calls return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure of a kind, with the kind's own answer to whether a retry is safe.
    pub fn new(code: Code, text: impl fmt::Display) -> Self {
        Self::with_retry(code, code.retry(), text)
    }

    /// A failure for which the caller knows whether a retry is safe, whatever the kind says.
    pub fn with_retry(code: Code, retry: Retry, text: impl fmt::Display) -> Self {
        Self {
            code,
            retry,
            text: text.to_string(),
        }
    }

    /// Which kind of failure it is. Programs decide by this, not by the text.
    pub fn kind(&self) -> Code {
        self.code
    }

    /// The kind's stable name, such as `unknown-topic`.
    pub fn code(&self) -> &'static str {
        self.code.name()
    }

    /// Whether the same request may be sent again.
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// The sentence without the code.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn bad_argument(text: impl fmt::Display) -> Self {
        Self::new(Code::BadArgument, text)
    }

    /// Turns the error of a statement into ours; `action` says what was tried.
    pub fn statement(action: impl fmt::Display) -> impl FnOnce(postgres::Error) -> Self {
        move |error| {
            let class = Class::from_error(&error);
            let (code, retry) = meaning(&class);
            Self::with_retry(
                code,
                retry,
                format_args!("cannot {action}: {}", describe(&error)),
            )
        }
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl From<PgError> for Error {
    fn from(error: PgError) -> Self {
        match error.class() {
            Some(class) => {
                let (code, retry) = meaning(class);
                Self::with_retry(code, retry, error)
            }
            None => Self::bad_argument(error),
        }
    }
}

/// What a class of the server's errors means here. Class `DP` is raised by the functions in `sql/`.
fn meaning(class: &Class) -> (Code, Retry) {
    let of_ours = match class.sqlstate.as_deref() {
        Some("DP001") => Some(Code::UnknownTopic),
        Some("DP002") => Some(Code::RecordTooLarge),
        Some("DP003") => Some(Code::WrongGeneration),
        Some("DP004") => Some(Code::Fenced),
        Some("DP005") => Some(Code::SequenceGap),
        Some("DP006") => Some(Code::OffsetOutOfRange),
        Some("DP007") => Some(Code::NewerSchema),
        Some("DP008") => Some(Code::UnknownGroup),
        Some("DP009") => Some(Code::UnknownMember),
        Some("DP010") => Some(Code::NameTaken),
        Some("DP011") => Some(Code::BadArgument),
        Some("DP012") => Some(Code::UnknownQueue),
        Some("DP013") => Some(Code::Compressed),
        Some("DP014") => Some(Code::Damaged),
        Some("DP015") => Some(Code::PlacedElsewhere),
        Some("DP016") => Some(Code::GroupInUse),
        _ => None,
    };
    match of_ours {
        Some(code) => (code, code.retry()),
        None => (
            Code::named(class.code).unwrap_or(Code::Refused),
            class.retry,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for code in Code::ALL {
            assert_eq!(Code::named(code.name()), Some(*code));
        }
        assert_eq!(Code::named("no-such"), None);
    }

    #[test]
    fn our_sqlstates_have_their_own_kinds() {
        let class = Class {
            code: "application",
            sqlstate: Some("DP004".to_owned()),
            retry: Retry::Never,
        };
        assert_eq!(meaning(&class), (Code::Fenced, Retry::Never));
    }
}

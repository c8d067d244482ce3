//! What is wrong with a body.

/// Bytes that are not the message they claim to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The body ends too early.
    #[error("{message}: the body ends inside {field}")]
    Short {
        /// The message's name.
        message: &'static str,
        /// The field that is not whole.
        field: &'static str,
    },
    /// The body goes on after its last field.
    #[error("{message}: {bytes} bytes after the last field")]
    Long {
        /// The message's name.
        message: &'static str,
        /// How many.
        bytes: usize,
    },
    /// A field has a value that means nothing.
    #[error("{message}: {field} {reason}")]
    Value {
        /// The message's name.
        message: &'static str,
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The frame has another verb.
    #[error("{message} has verb {expected}, the frame has {found}")]
    Verb {
        /// The message's name.
        message: &'static str,
        /// Its verb.
        expected: u8,
        /// The frame's.
        found: u8,
    },
}

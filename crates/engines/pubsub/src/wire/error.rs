//! What is wrong with a body.

/// Bytes that are not the message they claim to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The body ends too early.
    #[error("{message}: the body ends inside {field}")]
    Short {
        /// The name of the message.
        message: &'static str,
        /// The field that is not whole.
        field: &'static str,
    },
    /// The body goes on after its last field.
    #[error("{message}: {bytes} bytes after the last field")]
    Long {
        /// The name of the message.
        message: &'static str,
        /// How many bytes were left.
        bytes: usize,
    },
    /// A field has a value that means nothing.
    #[error("{message}: {field} {reason}")]
    Value {
        /// The name of the message.
        message: &'static str,
        /// The name of the field.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The frame has another verb.
    #[error("{message} has verb {expected}, the frame has {found}")]
    Verb {
        /// The name of the message.
        message: &'static str,
        /// The verb that the message has.
        expected: u8,
        /// The verb that came instead.
        found: u8,
    },
}

//! What can go wrong with an object store. No variant holds a credential or a signed address.

/// A failed operation on an object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// A location that is neither path nor bucket: mend it.
    #[error("cannot write to {text:?}: {reason}")]
    Location {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A setting of the environment is missing: set it.
    #[error("{name} is not set, and an object store needs it")]
    Missing {
        /// The variable.
        name: &'static str,
    },
    /// A setting of the environment is of no use: mend it.
    #[error("{name} is of no use: {reason}")]
    Setting {
        /// The variable.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// An object has the key already: remove it, or allow it to be replaced.
    #[error("{object} exists, and may not be replaced")]
    Exists {
        /// The object.
        object: String,
    },
    /// There is no such bucket: make it.
    #[error("cannot {action} {object}: there is no such bucket")]
    NoBucket {
        /// What was tried.
        action: &'static str,
        /// The object.
        object: String,
    },
    /// The store does not let these credentials do it: check the AWS_* variables.
    #[error("cannot {action} {object}: access denied ({code}: {message})")]
    Denied {
        /// What was tried.
        action: &'static str,
        /// The object.
        object: String,
        /// The store's code.
        code: String,
        /// The store's words.
        message: String,
    },
    /// The store said no.
    #[error("cannot {action} {object}: the store answered {status} ({code}: {message})")]
    Refused {
        /// What was tried.
        action: &'static str,
        /// The object.
        object: String,
        /// HTTP status.
        status: u16,
        /// The store's code.
        code: String,
        /// The store's words.
        message: String,
    },
    /// No answer came, after several attempts: try again later.
    #[error("cannot {action} {object}: {reason} ({attempts} attempts)")]
    Unreachable {
        /// What was tried.
        action: &'static str,
        /// The object.
        object: String,
        /// How often.
        attempts: u32,
        /// What happened at the last.
        reason: String,
    },
    /// What the store holds is not what was sent.
    #[error("{object} has {what} {found}, expected {expected}")]
    Mismatch {
        /// The object.
        object: String,
        /// Length or ETag.
        what: &'static str,
        /// What the store says.
        found: String,
        /// What was sent.
        expected: String,
    },
    /// More parts than a store takes: say about how long the object will be, or use larger parts.
    #[error("{object} is longer than {most_parts} parts of {part_bytes} bytes")]
    TooLong {
        /// The object.
        object: String,
        /// The limit.
        most_parts: u16,
        /// A part's length.
        part_bytes: usize,
    },
    /// The sink was used after its end or after an error: make another.
    #[error("{object} was finished or given up already")]
    Closed {
        /// The object.
        object: String,
    },
    /// The upload failed and could not be taken back: its parts cost money until the upload is
    /// aborted, by hand or by a rule of the bucket.
    #[error("{cause}; and upload {upload_id} stays behind: {abort}")]
    Orphan {
        /// The store's name of the upload.
        upload_id: String,
        /// Why it failed.
        cause: Box<ObjectError>,
        /// Why it could not be aborted.
        abort: Box<ObjectError>,
    },
}

impl ObjectError {
    pub(crate) fn into_io(self) -> dyno_io::IoError {
        dyno_io::IoError::Remote(Box::new(self))
    }
}

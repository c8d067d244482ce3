//! Errors of an object store, and what to do about each. No variant holds a credential or a signed
//! URL.

/// A failed operation on an object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The location is neither a path nor in a bucket: correct it.
    #[error("cannot write to {text:?}: {reason}")]
    Location {
        /// The location as it was given.
        text: String,
        /// What is wrong with the location or the setting.
        reason: &'static str,
    },
    /// An environment variable is missing: set it.
    #[error("{name} is not set, and an object store needs it")]
    Missing {
        /// Name of the environment variable.
        name: &'static str,
    },
    /// An environment variable cannot be used: correct it.
    #[error("{name} is of no use: {reason}")]
    Setting {
        /// Name of the environment variable.
        name: &'static str,
        /// What is wrong with the location or the setting.
        reason: String,
    },
    /// There is an object with this key: remove it, or allow it to be replaced.
    #[error("{object} exists, and may not be replaced")]
    Exists {
        /// The object, as `s3://BUCKET/KEY`.
        object: String,
    },
    /// There is no such bucket: create it.
    #[error("cannot {action} {object}: there is no such bucket")]
    NoBucket {
        /// The operation, as a verb.
        action: &'static str,
        /// The object, as `s3://BUCKET/KEY`.
        object: String,
    },
    /// The credentials lack the permission: check the AWS_* variables.
    #[error("cannot {action} {object}: access denied ({code}: {message})")]
    Denied {
        /// The operation, as a verb.
        action: &'static str,
        /// The object, as `s3://BUCKET/KEY`.
        object: String,
        /// The code of the store's error, such as `SlowDown`.
        code: String,
        /// The message of the store, shortened.
        message: String,
    },
    /// The store refused the request for another reason.
    #[error("cannot {action} {object}: the store answered {status} ({code}: {message})")]
    Refused {
        /// The operation, as a verb.
        action: &'static str,
        /// The object, as `s3://BUCKET/KEY`.
        object: String,
        /// The HTTP status of the answer.
        status: u16,
        /// The code of the store's error, such as `SlowDown`.
        code: String,
        /// The message of the store, shortened.
        message: String,
    },
    /// No answer came, after several attempts: try again later.
    #[error("cannot {action} {object}: {reason} ({attempts} attempts)")]
    Unreachable {
        /// The operation, as a verb.
        action: &'static str,
        /// The object, as `s3://BUCKET/KEY`.
        object: String,
        /// How often the request was sent.
        attempts: u32,
        /// What happened to the last attempt.
        reason: String,
    },
    /// The store does not have what was sent: write it again.
    #[error("{object} has {what} {found}, expected {expected}")]
    Mismatch {
        /// The object, as `s3://BUCKET/KEY`.
        object: String,
        /// The property that differs: length or ETag.
        what: &'static str,
        /// The value that the store returned.
        found: String,
        /// The value of what was sent.
        expected: String,
    },
    /// The object needs more parts than a store accepts: state its expected length, or use larger
    /// parts.
    #[error("{object} is longer than {most_parts} parts of {part_bytes} bytes")]
    TooLong {
        /// The object, as `s3://BUCKET/KEY`.
        object: String,
        /// The most parts that a store accepts.
        most_parts: u16,
        /// Length of each part, in bytes.
        part_bytes: usize,
    },
    /// The sink was used after its end or after an error: create another one.
    #[error("{object} was finished or given up already")]
    Closed {
        /// The object, as `s3://BUCKET/KEY`.
        object: String,
    },
    /// The upload failed and could not be aborted. Its parts cost money until it is, by hand or by
    /// a lifecycle rule of the bucket.
    #[error("{cause}; and upload {upload_id} stays behind: {abort}")]
    Orphan {
        /// The identifier of the upload in the store.
        upload_id: String,
        /// The error of the upload itself.
        cause: Box<ObjectError>,
        /// The error of the attempt to abort it.
        abort: Box<ObjectError>,
    },
}

impl ObjectError {
    pub(crate) fn into_io(self) -> dyno_io::IoError {
        dyno_io::IoError::Remote(Box::new(self))
    }
}

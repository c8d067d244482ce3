use std::path::PathBuf;

/// Why a column could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened, read or mapped.
    #[error("cannot read {path}: {source}")]
    Io {
        /// Where the file was opened from.
        path: PathBuf,
        /// The reason that the system gave.
        source: std::io::Error,
    },
    /// The footer or a page of a file is not what the format asks for.
    #[error("cannot read {path}: {reason}")]
    File {
        /// Where the file was opened from.
        path: PathBuf,
        /// What is wrong with the footer or the page.
        reason: String,
    },
    /// The bytes of a footer or of a page header contradict themselves.
    #[error("its metadata is damaged: {reason}")]
    Metadata {
        /// What was wrong, with the offending value.
        reason: String,
    },
    /// The file is sound Parquet, but outside of what these readers do. Another reader may do it.
    #[error("{what} is not read as codes")]
    Unsupported {
        /// The column, codec or encoding that is not read.
        what: String,
    },
    /// The bytes of a page contradict themselves, so the file is damaged.
    #[error("damaged page: {reason}")]
    Damaged {
        /// What was wrong, with the offending value.
        reason: String,
    },
}

impl ReadError {
    pub(super) fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged {
            reason: reason.into(),
        }
    }

    pub(super) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }
}

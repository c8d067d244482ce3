use std::path::PathBuf;

/// Why a column could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or mapped; check path and permissions.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The footer or a page of a file is not what the format asks for.
    #[error("cannot read {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes of a footer or of a page header contradict themselves.
    #[error("its metadata is damaged: {reason}")]
    Metadata {
        /// What was wrong, with the offending value.
        reason: String,
    },
    /// Sound Parquet, but outside of what these readers do; read the file the general way.
    #[error("{what} is not read as codes")]
    Unsupported {
        /// The column or encoding.
        what: String,
    },
    /// The bytes of a page contradict themselves; the file is damaged.
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

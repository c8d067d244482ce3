//! The destination of files, which is a folder, an object store, or a sink without names.

use std::path::PathBuf;
use std::str::FromStr;

use dyno_objects::Location;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The destination of the files of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Destination {
    /// A folder, which is made if it is missing.
    Folder(PathBuf),
    /// Objects below a prefix, in a store that speaks S3 and that the AWS_* variables name. An
    /// object appears when it is complete. There are no receipts, so an object that is there
    /// already is in the way.
    Objects {
        /// The name of the bucket.
        bucket: String,
        /// The prefix of all keys, which may be empty.
        prefix: String,
    },
    /// Nowhere, because the sink has no names: null or standard output.
    Nowhere,
}

impl FromStr for Destination {
    type Err = Error;

    /// Reads a path, or `s3://bucket/prefix`.
    fn from_str(text: &str) -> Result<Destination, Error> {
        Ok(match text.parse::<Location>()? {
            Location::Path(path) => Destination::Folder(path),
            Location::Objects { bucket, prefix } => Destination::Objects { bucket, prefix },
        })
    }
}

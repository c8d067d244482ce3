//! From a partition's files back to the partition.

use std::path::Path;
use std::sync::Arc;

use dyno_io::HostFiles;
use dyno_txn_api::{Error, Result};
use dyno_txn_core::Partition;
use dyno_txn_log::{FileLog, Options, Recovered, Recovery, fresh_identity};

use crate::error::from_log;
use crate::options::OpenOptions;
use crate::pieces::Joiner;

/// How the log of a partition is kept.
pub(crate) fn log_options(options: &OpenOptions) -> Options {
    let segment_bytes = options.segment_bytes;
    // All buffers together are to fit into a segment.
    let buffer_bytes = (1 << 20).min((segment_bytes / 4) as usize / 4096 * 4096);
    Options {
        identity: fresh_identity(),
        segment_bytes,
        buffer_bytes,
        ..Options::default()
    }
}

/// Applies checkpoint and log to the partition, and returns the log to go on with. Only in a directory that is `new`
/// may a log be missing.
pub(crate) fn recover(
    directory: &Path,
    options: Options,
    new: bool,
    partition: &mut Partition,
) -> Result<(FileLog, Recovered)> {
    let named = |error: Error| {
        let text = format!("{}: {}", directory.display(), error.text());
        Error::with_retry(error.kind(), error.retry(), text)
    };
    let files = Arc::new(HostFiles);
    let recovery = match new {
        true => Recovery::open(files, directory, options),
        false => Recovery::open_existing(files, directory, options),
    };
    let mut recovery = recovery.map_err(from_log)?;
    let mut joiner = Joiner::default();
    while let Some(chunk) = recovery.next_chunk().map_err(from_log)? {
        if let Some(record) = joiner.take(chunk).map_err(named)? {
            partition.restore(record).map_err(named)?;
        }
    }
    let mut joiner = Joiner::default();
    while let Some(record) = recovery.next_record().map_err(from_log)? {
        if let Some(record) = joiner.take(record.bytes).map_err(named)? {
            partition.restore(record).map_err(named)?;
        }
    }
    recovery.finish().map_err(from_log)
}

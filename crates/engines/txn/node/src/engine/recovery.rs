//! Restores a partition from its files.

use std::path::Path;
use std::sync::Arc;

use dyno_io::HostFiles;
use dyno_txn_api::{Error, Result};
use dyno_txn_core::Partition;
use dyno_txn_log::{FileLog, Options, Recovered, Recovery, fresh_identity};

use crate::error::from_log;
use crate::options::OpenOptions;
use crate::pieces::Joiner;

pub(crate) fn log_options(options: &OpenOptions) -> Options {
    let segment_bytes = options.segment_bytes;
    // The log demands that all buffers together fit into a segment.
    let buffer_bytes = (1 << 20).min((segment_bytes / 4) as usize / 4096 * 4096);
    Options {
        identity: fresh_identity(),
        segment_bytes,
        buffer_bytes,
        ..Options::default()
    }
}

/// Applies the checkpoint and the log behind it to the partition, and returns the log to continue.
/// A log may be missing only in a directory that is `new`: in any other one it has been lost, and
/// the database without it would look whole and lack rows.
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
    let recovery = if new {
        Recovery::open(files, directory, options)
    } else {
        Recovery::open_existing(files, directory, options)
    };
    let mut recovery = recovery.map_err(from_log)?;
    let mut joiner = Joiner::default();
    while let Some(chunk) = recovery.next_chunk().map_err(from_log)? {
        if let Some(record) = joiner.push(chunk).map_err(named)? {
            partition.restore(record).map_err(named)?;
        }
    }
    // Records of the log are cut on their own, so they do not continue a piece of the checkpoint.
    let mut joiner = Joiner::for_log();
    while let Some(record) = recovery.next_record().map_err(from_log)? {
        if let Some(record) = joiner.push(record.bytes).map_err(named)? {
            partition.restore(record).map_err(named)?;
        }
    }
    recovery.finish().map_err(from_log)
}

//! Backups: copies of an engine's directory while it runs, and directories made from them.

use std::path::Path;
use std::sync::Arc;

use dyno_io::{HostFiles, Storage};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_log::Cut;

use crate::directory::{Format, log_path, read_format, write_format};
use crate::error::{bad_argument, from_log, unavailable};
use crate::options::Durability;

/// Copies what the cuts of a running engine's logs, by partition, consist of. The file `format` is
/// written last: without it a directory does not open, so a copy that was cut short is not taken
/// for a whole one.
pub(crate) fn copy(cuts: &[Cut], partitions: u32, target: &Path) -> Result<()> {
    prepare(target)?;
    for (partition, cut) in cuts.iter().enumerate() {
        let to = log_path(target, partition as u32);
        cut.backup(&to).map_err(from_log)?;
    }
    let format = Format {
        partitions,
        durability: Durability::Fsync,
    };
    write_format(target, format)
}

/// Makes a directory of an engine in `to` from the backup `from`, checking every byte. `to` must be
/// empty or not exist.
///
/// # Errors
/// [`Code::Damaged`] if the backup is not complete, [`Code::BadArgument`] if `to` is not empty.
pub fn restore(from: &Path, to: &Path) -> Result<()> {
    let Some(format) = read_format(from)? else {
        let text = format!(
            "{}: it is not a directory of an engine, or the backup was cut short",
            from.display()
        );
        return Err(Error::new(Code::Damaged, text));
    };
    let Format {
        partitions,
        durability,
    } = format;
    if durability != Durability::Fsync {
        return Err(bad_argument(format!(
            "{}: it was made for durability `{durability}`, which stores nothing",
            from.display()
        )));
    }
    prepare(to)?;
    let storage: Arc<dyn Storage> = Arc::new(HostFiles);
    for partition in 0..partitions {
        let (from, to) = (log_path(from, partition), log_path(to, partition));
        dyno_txn_log::restore(&storage, &from, &to).map_err(from_log)?;
    }
    write_format(to, format)
}

fn prepare(target: &Path) -> Result<()> {
    HostFiles.make_directory(target).map_err(unavailable)?;
    let mut entries = std::fs::read_dir(target).map_err(unavailable)?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(bad_argument(format!(
            "{}: it is not empty",
            target.display()
        ))),
    }
}

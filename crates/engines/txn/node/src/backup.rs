//! Copies of an engine's directory: online, and back.

use std::path::Path;
use std::sync::Arc;

use dyno_io::{HostFiles, Storage};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_log::Lsn;

use crate::directory::{log_of, read_format, write_format};
use crate::engine::Engine;
use crate::error::{bad_argument, from_log, unavailable};
use crate::options::Durability;

/// Copies the logs of a running engine up to these ends; the format last, so that a copy that was cut
/// short is none.
pub(crate) fn copy(engine: &Engine, ends: &[Lsn], target: &Path) -> Result<()> {
    prepare(target)?;
    for (partition, &end) in ends.iter().enumerate() {
        let to = log_of(target, partition as u32);
        engine
            .checkpointer(partition)
            .backup_until(&to, end)
            .map_err(from_log)?;
    }
    write_format(target, engine.directory().partitions, Durability::Fsync)
}

/// Makes the engine's directory of the backup `from` anew in `to`, checking every byte. `to` must be
/// empty, or not there.
///
/// # Errors
/// [`Code::Damaged`] when the backup is not whole, [`Code::BadArgument`] when `to` is taken.
pub fn restore(from: &Path, to: &Path) -> Result<()> {
    let Some((partitions, durability)) = read_format(from)? else {
        let text = format!(
            "{}: no directory of an engine, or a backup cut short",
            from.display()
        );
        return Err(Error::new(Code::Damaged, text));
    };
    if durability != Durability::Fsync {
        return Err(bad_argument(format!(
            "{}: made for durability `{durability}`",
            from.display()
        )));
    }
    prepare(to)?;
    let storage: Arc<dyn Storage> = Arc::new(HostFiles);
    for partition in 0..partitions {
        let (from, to) = (log_of(from, partition), log_of(to, partition));
        dyno_txn_log::restore(&storage, &from, &to).map_err(from_log)?;
    }
    write_format(to, partitions, durability)
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

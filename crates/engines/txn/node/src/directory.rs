//! The directory of an engine: `lock`, `format`, and a folder `partition-N` with the log of each partition.
//!
//! `format` is text: `dyno-txn`, its version, the number of partitions, the durability, and a checksum
//! (FORMAT.md, "An engine's directory").

use std::path::{Path, PathBuf};

use dyno_io::{Claim, FileSystem, HostFiles, IoError, Storage};
use dyno_txn_api::{Error, Result};

use crate::error::{bad, unavailable};
use crate::options::Durability;
use crate::sealed::{Fields, Sealed, damaged};

const FORMAT: Sealed = Sealed {
    file: "format",
    name: "dyno-txn",
    version: 1,
};
/// Partitions of one directory at most.
pub(crate) const PARTITIONS_MAX: u32 = 1024;

/// An engine's directory, held by this process.
#[derive(Debug)]
pub(crate) struct Directory {
    pub path: PathBuf,
    pub partitions: u32,
    pub durability: Durability,
    /// Of a share of a database in several processes.
    pub identity: u64,
    _claim: Claim,
}

impl Directory {
    /// Takes the directory, or makes it with these many partitions.
    pub fn open(
        path: &Path,
        partitions: Option<u32>,
        threads: u32,
        how: Durability,
        (part, of): (u32, u32),
    ) -> Result<Self> {
        HostFiles.make_directory(path).map_err(unavailable)?;
        let claim = HostFiles
            .claim(&path.join("lock"))
            .map_err(|error| match error {
                IoError::Busy { .. } => unavailable(format!(
                    "{}: another process runs an engine here",
                    path.display()
                )),
                error => unavailable(error),
            })?;
        let known = read_format(path)?;
        let identity = match of {
            1 if path.join("member").exists() => {
                let text = "it holds a share of a database in several processes";
                return Err(bad(format!("{}: {text}", path.display())));
            }
            1 => 0,
            _ => crate::member::identity(path, (part, of), known.is_none())?,
        };
        let (found, durability) = match known {
            Some((found, durability)) => {
                check_same(path, (found, durability), (partitions, how))?;
                if of > 1 && durability == Durability::Memory {
                    return Err(rows_lost(path, (part, of)));
                }
                (found, durability)
            }
            None => {
                let least = threads.saturating_mul(of);
                let partitions = partitions.unwrap_or(least);
                if !(least..=PARTITIONS_MAX).contains(&partitions) {
                    let text = format!(
                        "{partitions} partitions: from one for each of {least} threads to \
                         {PARTITIONS_MAX}"
                    );
                    return Err(bad(text));
                }
                write_format(path, partitions, how)?;
                (partitions, how)
            }
        };
        let path = path.to_path_buf();
        Ok(Self {
            path,
            partitions: found,
            durability,
            identity,
            _claim: claim,
        })
    }

    /// Where a partition's log is.
    pub fn log(&self, partition: u32) -> PathBuf {
        log_of(&self.path, partition)
    }
}

pub(crate) fn log_of(directory: &Path, partition: u32) -> PathBuf {
    directory.join(format!("partition-{partition}"))
}

/// Other processes may go on while this one's rows are gone: it must not answer as if there had been none.
fn rows_lost(path: &Path, (part, of): (u32, u32)) -> Error {
    unavailable(format!(
        "{}: part {part} of {of} kept its rows in memory alone (durability `memory`), and they are lost: they went with \
         the process that had them, and without them the database is not whole. Stop all its processes and oracles, \
         empty their directories, and start all anew",
        path.display()
    ))
}

fn check_same(
    path: &Path,
    found: (u32, Durability),
    asked: (Option<u32>, Durability),
) -> Result<()> {
    let path = path.display();
    if asked.0.is_some_and(|asked| asked != found.0) {
        let text = format!(
            "{path}: made with {} partitions, which stay as they are, not {}",
            found.0,
            asked.0.unwrap_or_default()
        );
        return Err(bad(text));
    }
    if asked.1 != found.1 {
        let text = format!(
            "{path}: made for durability `{}`, not `{}`",
            found.1, asked.1
        );
        return Err(bad(text));
    }
    Ok(())
}

/// Partitions and durability of a directory that was made before.
pub(crate) fn read_format(path: &Path) -> Result<Option<(u32, Durability)>> {
    FORMAT.read(path, parse)
}

fn parse(fields: &mut Fields<'_>) -> Result<(u32, Durability)> {
    let partitions = u32::try_from(fields.number("partitions")?).ok();
    let partitions = partitions
        .filter(|n| (1..=PARTITIONS_MAX).contains(n))
        .ok_or_else(|| damaged(format!("partitions: from 1 to {PARTITIONS_MAX}")))?;
    Ok((partitions, fields.text("durability")?.parse()?))
}

pub(crate) fn write_format(path: &Path, partitions: u32, durability: Durability) -> Result<()> {
    FORMAT.write(
        path,
        &[("partitions", &partitions), ("durability", &durability)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::assert_sealed;

    #[test]
    fn the_first_format_is_read_and_damage_found() {
        // Version 1 as it was first written: every later version must read it.
        assert_sealed(
            &FORMAT,
            "dyno-txn 1\npartitions 4\ndurability fsync\nchecksum ce95400d\n",
            &[("partitions", &4), ("durability", &"fsync")],
            (4, Durability::Fsync),
            parse,
        );
    }

    #[test]
    fn a_share_in_memory_alone_lives_once() {
        let at = tempfile::tempdir().expect("a directory");
        let open = |how, share| Directory::open(at.path(), Some(3), 1, how, share);
        drop(open(Durability::Memory, (1, 3)).expect("new"));
        let error = open(Durability::Memory, (1, 3)).expect_err("its rows are gone");
        assert!(error.text().contains("part 1 of 3"), "{error}");
        // One process that has everything begins with nothing, and says so by its durability.
        let alone = tempfile::tempdir().expect("a directory");
        let open = || Directory::open(alone.path(), None, 1, Durability::Memory, (0, 1));
        drop(open().expect("new"));
        drop(open().expect("again"));
    }

    #[test]
    fn one_process_at_a_time_and_the_same_numbers() {
        let at = tempfile::tempdir().expect("a directory");
        let open = |partitions, how| Directory::open(at.path(), partitions, 1, how, (0, 1));
        let first = open(Some(3), Durability::Fsync).expect("new");
        assert!(open(None, Durability::Fsync).is_err(), "taken");
        drop(first);
        assert_eq!(open(None, Durability::Fsync).expect("free").partitions, 3);
        assert!(open(Some(2), Durability::Fsync).is_err());
        assert!(open(None, Durability::Memory).is_err());
    }
}

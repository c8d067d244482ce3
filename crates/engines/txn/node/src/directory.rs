//! The directory of an engine: `lock`, `format`, and a folder `partition-N` with the log of each partition.
//!
//! While it is made the first time there is `unfinished` too. It goes when all logs are there, before anything is stored
//! in them; from then on no file may be missing, and an engine that finds one missing refuses to start.
//!
//! `format` is text: `dyno-txn`, its version, the number of partitions, the durability, and a checksum
//! (FORMAT.md, "An engine's directory").

use std::io::Write;
use std::path::{Path, PathBuf};

use dyno_io::{Claim, FileSystem, HostFiles, IoError, Storage};
use dyno_txn_api::{Code, Error, Result};

use crate::error::{bad_argument, unavailable};
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
    /// Nothing was ever stored here.
    new: bool,
    _claim: Claim,
}

/// What an engine wants of its directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Partitions of a new one; none: one for each thread of all processes.
    pub partitions: Option<u32>,
    pub threads: u32,
    pub durability: Durability,
    /// Which process it is, and of how many.
    pub share: (u32, u32),
    /// Whether one that is not there is made.
    pub create: bool,
}

/// The file that is there while a directory is made.
const UNFINISHED: &str = "unfinished";

impl Directory {
    /// Takes the directory, or makes it.
    pub fn open(path: &Path, wanted: &Wanted) -> Result<Self> {
        if !wanted.create && !path.join(FORMAT.file).exists() && !is_begun(path) {
            let text = format!("there is no database in {}", path.display());
            return Err(Error::new(Code::NotFound, text));
        }
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
        if known.is_none() && !path.join(UNFINISHED).exists() {
            if is_begun(path) {
                return Err(FORMAT.missing(path));
            }
            // Before anything else, so that what a crash leaves is not taken for a database that has lost files.
            mark(path)?;
        }
        let (part, of) = wanted.share;
        let identity = match of {
            1 if path.join("member").exists() => {
                let text = "it holds a share of a database in several processes";
                return Err(bad_argument(format!("{}: {text}", path.display())));
            }
            1 => 0,
            _ => crate::member::identity(path, (part, of), known.is_none())?,
        };
        let how = wanted.durability;
        let (partitions, durability) = match known {
            Some(known) => {
                check_same(path, known, (wanted.partitions, how))?;
                if of > 1 && known.1 == Durability::Memory {
                    return Err(rows_lost(path, (part, of)));
                }
                known
            }
            None => {
                let partitions = partitions_of(wanted)?;
                write_format(path, partitions, how)?;
                (partitions, how)
            }
        };
        Ok(Self {
            path: path.to_path_buf(),
            partitions,
            durability,
            identity,
            new: path.join(UNFINISHED).exists(),
            _claim: claim,
        })
    }

    /// Whether nothing was ever stored here, so that logs may be missing.
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// All files of the directory are there: none may be missing from now on.
    pub fn finish(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.new, false) {
            let remove = std::fs::remove_file(self.path.join(UNFINISHED));
            remove.map_err(|error| unavailable(format!("{}: {error}", self.path.display())))?;
            HostFiles.sync_directory(&self.path).map_err(unavailable)?;
        }
        Ok(())
    }

    /// Where a partition's log is.
    pub fn log(&self, partition: u32) -> PathBuf {
        log_of(&self.path, partition)
    }
}

/// Whether files of a database lie there.
fn is_begun(path: &Path) -> bool {
    ["remote", "member"]
        .iter()
        .any(|name| path.join(name).exists())
        || std::fs::read_dir(path).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                let name = entry.file_name();
                name.to_string_lossy().starts_with(PARTITION)
            })
        })
}

/// Makes [`UNFINISHED`].
fn mark(path: &Path) -> Result<()> {
    let file = path.join(UNFINISHED);
    let text = "The database in this directory is being made; nothing is stored in it yet.\n";
    let write = || {
        let mut out = std::fs::File::create(&file)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()
    };
    write().map_err(|error| unavailable(format!("{}: {error}", file.display())))?;
    HostFiles.sync_directory(path).map_err(unavailable)
}

/// How many partitions a new directory gets.
fn partitions_of(wanted: &Wanted) -> Result<u32> {
    let least = wanted.threads.saturating_mul(wanted.share.1);
    let partitions = wanted.partitions.unwrap_or(least);
    match (least..=PARTITIONS_MAX).contains(&partitions) {
        true => Ok(partitions),
        false => Err(bad_argument(format!(
            "{partitions} partitions: from one for each of {least} threads to {PARTITIONS_MAX}"
        ))),
    }
}

/// What the folder of a partition's log is called, before its number.
const PARTITION: &str = "partition-";

pub(crate) fn log_of(directory: &Path, partition: u32) -> PathBuf {
    directory.join(format!("{PARTITION}{partition}"))
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
        return Err(bad_argument(text));
    }
    if asked.1 != found.1 {
        let text = format!(
            "{path}: made for durability `{}`, not `{}`",
            found.1, asked.1
        );
        return Err(bad_argument(text));
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

    fn wanted(partitions: Option<u32>, durability: Durability, share: (u32, u32)) -> Wanted {
        Wanted {
            partitions,
            threads: 1,
            durability,
            share,
            create: true,
        }
    }

    #[test]
    fn a_share_in_memory_alone_lives_once() {
        let at = tempfile::tempdir().expect("a directory");
        let open = |how, share| Directory::open(at.path(), &wanted(Some(3), how, share));
        drop(open(Durability::Memory, (1, 3)).expect("new"));
        let error = open(Durability::Memory, (1, 3)).expect_err("its rows are gone");
        assert!(error.text().contains("part 1 of 3"), "{error}");
        // One process that has everything begins with nothing, and says so by its durability.
        let alone = tempfile::tempdir().expect("a directory");
        let open = || Directory::open(alone.path(), &wanted(None, Durability::Memory, (0, 1)));
        drop(open().expect("new"));
        drop(open().expect("again"));
    }

    #[test]
    fn one_process_at_a_time_and_the_same_numbers() {
        let at = tempfile::tempdir().expect("a directory");
        let open = |partitions, how| Directory::open(at.path(), &wanted(partitions, how, (0, 1)));
        let first = open(Some(3), Durability::Fsync).expect("new");
        assert!(open(None, Durability::Fsync).is_err(), "taken");
        drop(first);
        assert_eq!(open(None, Durability::Fsync).expect("free").partitions, 3);
        assert!(open(Some(2), Durability::Fsync).is_err());
        assert!(open(None, Durability::Memory).is_err());
    }

    #[test]
    fn a_directory_is_new_until_it_is_finished_whatever_crashes() {
        let at = tempfile::tempdir().expect("a directory");
        let fsync = wanted(Some(3), Durability::Fsync, (0, 1));
        let open = || Directory::open(at.path(), &fsync);
        assert!(open().expect("new").is_new());
        // A crash came before the format was written, after some logs were made, or before they all were.
        std::fs::remove_file(at.path().join("format")).expect("it was there");
        std::fs::create_dir(log_of(at.path(), 1)).expect("room");
        let mut directory = open().expect("begun again");
        assert!(directory.is_new());
        directory.finish().expect("room");
        drop(directory);
        assert!(!open().expect("made").is_new());
        std::fs::remove_file(at.path().join("format")).expect("it was there");
        let refused = open().expect_err("it is not known what it holds");
        assert!(refused.text().contains("`format`"), "{refused}");
    }

    #[test]
    fn who_only_wants_to_read_makes_nothing() {
        let at = tempfile::tempdir().expect("a directory");
        let path = at.path().join("typo");
        let reading = Wanted {
            create: false,
            ..wanted(None, Durability::Fsync, (0, 1))
        };
        let refused = Directory::open(&path, &reading).expect_err("there is nothing");
        assert!(
            refused.text().contains("there is no database in"),
            "{refused}"
        );
        assert!(!path.exists());
        let refused = Directory::open(at.path(), &reading).expect_err("there is nothing");
        assert!(
            refused.text().contains("there is no database in"),
            "{refused}"
        );
        assert_eq!(at.path().read_dir().expect("a directory").count(), 0);
    }
}

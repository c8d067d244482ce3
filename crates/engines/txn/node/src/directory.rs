//! The directory of an engine: `lock`, `format`, and a folder `partition-N` with the log of each
//! partition.
//!
//! While it is being created there is a file `unfinished` too. It is removed when all logs exist,
//! before anything is stored in them. From then on no file may be missing, and an engine that finds
//! one missing refuses to start: without the mark it could not tell a lost file from one that was
//! never made.
//!
//! `format` is text: `dyno-txn`, its version, the number of partitions, the durability, and a
//! checksum (docs/formats/txn-directory.md).

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

/// An engine's directory, locked for this process as long as this lives.
#[derive(Debug)]
pub(crate) struct Directory {
    pub path: PathBuf,
    pub partitions: u32,
    pub durability: Durability,
    /// For a share of a database in several processes; 0 for one in a single process.
    pub identity: u64,
    /// Whether nothing was ever stored here.
    new: bool,
    _claim: Claim,
}

/// What an engine requires of its directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectoryOptions {
    /// Partitions of a new one. By default one for each thread of all processes.
    pub partitions: Option<u32>,
    /// Threads of this process.
    pub threads: u32,
    pub durability: Durability,
    /// The index of the process, and the number of processes.
    pub share: (u32, u32),
    /// Whether it is created if it does not exist.
    pub create: bool,
}

/// The file that exists while a directory is being created.
const UNFINISHED: &str = "unfinished";

impl Directory {
    /// Opens the directory, or creates it if that is wanted, and locks it.
    ///
    /// # Errors
    /// [`Code::NotFound`] for one that does not exist and is not to be created,
    /// [`Code::Unavailable`] for one that another process has locked, [`Code::Damaged`] if a file
    /// is missing or changed, and [`Code::BadArgument`] if it was made with other settings.
    pub fn open(path: &Path, options: &DirectoryOptions) -> Result<Self> {
        if !options.create && !path.join(FORMAT.file).exists() && !has_files(path) {
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
            if has_files(path) {
                return Err(FORMAT.missing(path));
            }
            // Before any other file, so that what a crash leaves of the creation is not taken for a
            // database that has lost files.
            mark_unfinished(path)?;
        }
        let (part, of) = options.share;
        let identity = match of {
            1 if path.join("member").exists() => {
                let text = "it holds a share of a database in several processes";
                return Err(bad_argument(format!("{}: {text}", path.display())));
            }
            1 => 0,
            _ => crate::member::identity(path, (part, of), known.is_none())?,
        };
        let format = match known {
            Some(known) => {
                check_same(path, known, options)?;
                // Only if the directory was made before: then its rows existed, and are gone.
                if of > 1 && known.durability == Durability::Memory {
                    return Err(rows_lost(path, (part, of)));
                }
                known
            }
            None => {
                let partitions = partition_count(options)?;
                let format = Format {
                    partitions,
                    durability: options.durability,
                };
                write_format(path, format)?;
                format
            }
        };
        Ok(Self {
            path: path.to_path_buf(),
            partitions: format.partitions,
            durability: format.durability,
            identity,
            new: path.join(UNFINISHED).exists(),
            _claim: claim,
        })
    }

    /// Whether nothing was ever stored here, so that logs may be missing.
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// Ends the creation: all files exist, and none may be missing from now on. The caller has
    /// stored nothing yet, so that a crash before this returns loses nothing when the creation
    /// begins again.
    pub fn finish(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.new, false) {
            let remove = std::fs::remove_file(self.path.join(UNFINISHED));
            remove.map_err(|error| unavailable(format!("{}: {error}", self.path.display())))?;
            HostFiles.sync_directory(&self.path).map_err(unavailable)?;
        }
        Ok(())
    }

    /// The folder of a partition's log.
    pub fn log(&self, partition: u32) -> PathBuf {
        log_path(&self.path, partition)
    }
}

/// Whether files of a database lie there, with or without `format`.
fn has_files(path: &Path) -> bool {
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

fn mark_unfinished(path: &Path) -> Result<()> {
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

/// The number of partitions of a new directory: at least one for each thread, which would otherwise
/// idle.
fn partition_count(options: &DirectoryOptions) -> Result<u32> {
    let least = options.threads.saturating_mul(options.share.1);
    let partitions = options.partitions.unwrap_or(least);
    if (least..=PARTITIONS_MAX).contains(&partitions) {
        Ok(partitions)
    } else {
        Err(bad_argument(format!(
            "{partitions} partitions: it must be from {least}, one for each thread, to \
             {PARTITIONS_MAX}"
        )))
    }
}

/// The name of a partition's folder, before its number.
const PARTITION: &str = "partition-";

pub(crate) fn log_path(directory: &Path, partition: u32) -> PathBuf {
    directory.join(format!("{PARTITION}{partition}"))
}

/// The error for a share that kept its rows in memory and is started again. The other processes may
/// have gone on, so it must not answer as if there had never been any rows.
fn rows_lost(path: &Path, (part, of): (u32, u32)) -> Error {
    unavailable(format!(
        "{}: part {part} of {of} kept its rows in memory alone (durability `memory`), and they \
         are lost: they went with the process that had them, and without them the database is not \
         whole. Stop all its processes and oracles, empty their directories, and start all anew",
        path.display()
    ))
}

/// What a directory was made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    pub partitions: u32,
    pub durability: Durability,
}

fn check_same(path: &Path, found: Format, options: &DirectoryOptions) -> Result<()> {
    let path = path.display();
    if let Some(partitions) = options.partitions
        && partitions != found.partitions
    {
        let text = format!(
            "{path}: it was made with {} partitions, which stay as they are, not {partitions}",
            found.partitions
        );
        return Err(bad_argument(text));
    }
    if options.durability != found.durability {
        let text = format!(
            "{path}: it was made for durability `{}`, not `{}`",
            found.durability, options.durability
        );
        return Err(bad_argument(text));
    }
    Ok(())
}

/// Reads the file `format`. Returns `None` if there is no such file.
pub(crate) fn read_format(path: &Path) -> Result<Option<Format>> {
    FORMAT.read(path, parse)
}

fn parse(fields: &mut Fields<'_>) -> Result<Format> {
    let partitions = u32::try_from(fields.number("partitions")?).ok();
    let partitions = partitions
        .filter(|n| (1..=PARTITIONS_MAX).contains(n))
        .ok_or_else(|| damaged(format!("`partitions` is not from 1 to {PARTITIONS_MAX}")))?;
    Ok(Format {
        partitions,
        durability: fields.text("durability")?.parse()?,
    })
}

pub(crate) fn write_format(path: &Path, format: Format) -> Result<()> {
    let Format {
        partitions,
        durability,
    } = format;
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
            Format {
                partitions: 4,
                durability: Durability::Fsync,
            },
            parse,
        );
    }

    fn options(
        partitions: Option<u32>,
        durability: Durability,
        share: (u32, u32),
    ) -> DirectoryOptions {
        DirectoryOptions {
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
        let open = |how, share| Directory::open(at.path(), &options(Some(3), how, share));
        drop(open(Durability::Memory, (1, 3)).expect("new"));
        let error = open(Durability::Memory, (1, 3)).expect_err("its rows are gone");
        assert!(error.text().contains("part 1 of 3"), "{error}");
        // One process that has everything begins with nothing, and says so by its durability.
        let alone = tempfile::tempdir().expect("a directory");
        let open = || Directory::open(alone.path(), &options(None, Durability::Memory, (0, 1)));
        drop(open().expect("new"));
        drop(open().expect("again"));
    }

    #[test]
    fn one_process_at_a_time_and_the_same_numbers() {
        let at = tempfile::tempdir().expect("a directory");
        let open = |partitions, how| Directory::open(at.path(), &options(partitions, how, (0, 1)));
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
        let fsync = options(Some(3), Durability::Fsync, (0, 1));
        let open = || Directory::open(at.path(), &fsync);
        assert!(open().expect("new").is_new());
        // A crash came before the format was written, after some logs were made, or before they all
        // were.
        std::fs::remove_file(at.path().join("format")).expect("it was there");
        std::fs::create_dir(log_path(at.path(), 1)).expect("room");
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
        let reading = DirectoryOptions {
            create: false,
            ..options(None, Durability::Fsync, (0, 1))
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

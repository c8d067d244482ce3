//! The directory of an engine: `lock`, `format`, and a folder `partition-N` with the log of each partition.
//!
//! `format` is text: `dyno-txn`, its version, the number of partitions, the durability, and a checksum
//! (FORMAT.md, "An engine's directory").

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use dyno_io::{Claim, FileSystem, HostFiles, IoError, Storage};
use dyno_txn_api::{Code, Error, Result};

use crate::error::{bad, unavailable};
use crate::options::Durability;

const FORMAT_VERSION: u32 = 1;
const FORMAT: &str = "format";
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
    let file = path.join(FORMAT);
    let Some(text) = read_text(&file)? else {
        return Ok(None);
    };
    parse(&text).map(Some).map_err(|error| {
        Error::new(
            error.kind(),
            format!("{}: {}", file.display(), error.text()),
        )
    })
}

fn parse(text: &str) -> Result<(u32, Durability)> {
    let damaged = |what: &str| Error::new(Code::Damaged, what);
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| line.strip_prefix("dyno-txn "));
    let version: u32 = version
        .and_then(|version| version.parse().ok())
        .ok_or_else(|| damaged("it does not begin with `dyno-txn` and a version"))?;
    if version > FORMAT_VERSION {
        let text = format!("format version {version}; this program knows up to {FORMAT_VERSION}");
        return Err(Error::new(Code::NewerVersion, text));
    }
    let mut field = |name: &str| {
        let line = lines
            .next()
            .and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.ok_or_else(|| damaged(&format!("no line `{name}` where it should be")))
    };
    let partitions = field("partitions")?;
    let durability = field("durability")?;
    let checksum = field("checksum")?;
    let covered = text.len().saturating_sub("checksum 00000000\n".len());
    if checksum != format!("{:08x}", dyno_checksum::crc32c(&text.as_bytes()[..covered])) {
        return Err(damaged("its checksum is wrong"));
    }
    let partitions = partitions
        .parse()
        .ok()
        .filter(|n| (1..=PARTITIONS_MAX).contains(n));
    let partitions = partitions.ok_or_else(|| damaged("no number of partitions"))?;
    Ok((partitions, durability.parse()?))
}

fn format_text(partitions: u32, durability: Durability) -> String {
    let text =
        format!("dyno-txn {FORMAT_VERSION}\npartitions {partitions}\ndurability {durability}\n");
    let checksum = dyno_checksum::crc32c(text.as_bytes());
    format!("{text}checksum {checksum:08x}\n")
}

pub(crate) fn write_format(path: &Path, partitions: u32, durability: Durability) -> Result<()> {
    write_text(path, FORMAT, &format_text(partitions, durability))
}

/// A file of text, if it is there.
pub(crate) fn read_text(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unavailable(format!("{}: {error}", file.display()))),
    }
}

/// Writes a file aside and moves it to its place, so that it is there whole or not at all.
pub(crate) fn write_text(directory: &Path, name: &str, text: &str) -> Result<()> {
    let (file, aside) = (directory.join(name), directory.join(format!("{name}.new")));
    let write = || -> std::io::Result<()> {
        let mut out = fs::File::create(&aside)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&aside, &file)
    };
    write().map_err(|error| unavailable(format!("{}: {error}", file.display())))?;
    HostFiles.sync_directory(directory).map_err(unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1 as it was first written: every later version must read it.
    const FIXTURE: &str = "dyno-txn 1\npartitions 4\ndurability fsync\nchecksum ce95400d\n";

    #[test]
    fn the_first_format_is_read() {
        assert_eq!(parse(FIXTURE), Ok((4, Durability::Fsync)));
        assert_eq!(format_text(4, Durability::Fsync), FIXTURE);
    }

    #[test]
    fn a_change_is_found_and_a_newer_version_named() {
        for at in 0..FIXTURE.len() {
            let mut bytes = FIXTURE.as_bytes().to_vec();
            bytes[at] ^= 1;
            let text = String::from_utf8(bytes).expect("still ASCII");
            assert!(parse(&text).is_err(), "byte {at}");
        }
        let newer = parse("dyno-txn 2\n").expect_err("newer");
        assert_eq!(newer.kind(), Code::NewerVersion);
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

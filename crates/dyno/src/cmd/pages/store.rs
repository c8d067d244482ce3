//! Turns flags into a store's settings, the schedule of its background work, and the file for pages
//! that leave memory.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use dyno_pages::{BackingFile, MOST_LIMIT_BYTES, PAGE_BYTES, Schedule, Settings, Tiers, WriteBack};

use super::memory;
use crate::args::{CodecArg, PagesStoreArgs, WriteBackArg};

/// Memory above the store's size: a page that is overwritten has two slots for a moment, and each
/// slot size has a span that is not full.
const ROOM: u64 = 32 << 20;
/// Sizes that a store can have.
const SIZES: std::ops::RangeInclusive<u64> = PAGE_BYTES as u64..=4 << 50;

/// Settings of the store; `file` is what [`file_of`] made.
pub fn settings(args: &PagesStoreArgs, file: Option<&File>) -> anyhow::Result<Settings> {
    ensure!(
        SIZES.contains(&args.size),
        "--size must be 4KiB to 4PiB, not {}",
        memory::shown(args.size)
    );
    let pages = args.size.div_ceil(PAGE_BYTES as u64);
    let machine = memory::available_bytes();
    memory::check_size(args.size, pages, machine)?;
    let limit = match args.limit {
        Some(limit) => {
            ensure!(
                (64 << 10..=MOST_LIMIT_BYTES).contains(&limit),
                "--limit must be 64KiB to 128GiB, not {}",
                memory::shown(limit)
            );
            // A warning and not an error: the limit is a bound, and pages that compress well may
            // never reach it.
            if let Some(machine) = machine.filter(|&machine| limit > machine) {
                eprintln!(
                    "dyno: --limit {}: this machine or control group has {} of memory",
                    memory::shown(limit),
                    memory::shown(machine)
                );
            }
            limit
        }
        None => {
            let wanted = args.size.saturating_add(ROOM).min(MOST_LIMIT_BYTES);
            memory::default_limit(pages, wanted, machine)
        }
    };
    Ok(Settings {
        share: args.share,
        tiers: tiers(args.codec),
        level: args.level,
        backing: match (file, file_pages(args)?) {
            (Some(file), Some(pages)) => Some(BackingFile {
                path: path_of(std::os::fd::AsFd::as_fd(file)),
                pages,
            }),
            _ => None,
        },
        ..Settings::new(pages, limit)
    })
}

/// How many pages the file may hold; `None` without a file.
pub fn file_pages(args: &PagesStoreArgs) -> anyhow::Result<Option<u32>> {
    if args.backing.is_none() {
        return Ok(None);
    }
    let bytes = args.backing_size.unwrap_or(args.size);
    let pages = u32::try_from(bytes / PAGE_BYTES as u64).ok();
    let pages = pages.filter(|&pages| pages > 0);
    let pages =
        pages.with_context(|| format!("--backing-size {bytes}: it must be 4KiB to 128GiB"))?;
    Ok(Some(pages))
}

/// Makes the file for pages that leave memory, readable by its owner alone, and unlinks it at once.
/// Its bytes are useless without the memory, so the kernel should free it when the last process
/// that has it ends. It is created by name, and not as an unnamed file, so that an existing file at
/// the path is an error.
pub fn file_of(args: &PagesStoreArgs) -> anyhow::Result<Option<File>> {
    let Some(path) = &args.backing else {
        return Ok(None);
    };
    // A size that no file can have is refused before there is a file, so that an existing one at
    // the path does not hide the flag that is wrong.
    file_pages(args)?;
    let made = || format!("--backing {}: cannot make this file", path.display());
    let mut options = File::options();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(path).with_context(made)?;
    fs::remove_file(path).with_context(made)?;
    Ok(Some(file))
}

/// A path at which this process can open an unlinked file again.
pub fn path_of(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Refuses an address that other machines reach: the endpoint authenticates no one.
pub fn check_metrics(at: Option<SocketAddr>) -> anyhow::Result<()> {
    match at {
        Some(at) => {
            ensure!(
                at.ip().is_loopback(),
                "--metrics {at}: other machines can reach that address, and clients are not authenticated; use \
                 127.0.0.1 or [::1]"
            );
            Ok(())
        }
        None => Ok(()),
    }
}

/// The tiers of the store for a codec of the command line.
pub fn tiers(codec: CodecArg) -> Tiers {
    match codec {
        CodecArg::Lz4 => Tiers::Lz4,
        CodecArg::Zstd => Tiers::Zstd,
        CodecArg::Auto => Tiers::Lz4ThenZstd,
    }
}

/// Idle pages leave after one and a half times the idle time, when the second tier has had them;
/// those that nothing packs after half of it.
pub fn write_back(kind: WriteBackArg) -> WriteBack {
    let (packed, raw) = match kind {
        WriteBackArg::Idle => (Some(3), Some(3)),
        WriteBackArg::Incompressible => (None, Some(1)),
        WriteBackArg::Both => (Some(3), Some(1)),
    };
    WriteBack { packed, raw }
}

/// Pages idle for so long are packed again and written back, packing within a share of one
/// processor.
pub fn schedule(idle: Duration, cpu_share: f64, kind: Option<WriteBackArg>) -> Schedule {
    let passes = Schedule::default().idle;
    Schedule {
        age_every: idle / u32::from(passes),
        cpu_share,
        write_back: kind.map(write_back),
        ..Schedule::default()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: PagesStoreArgs,
    }

    fn store(arguments: &[&str]) -> PagesStoreArgs {
        Line::parse_from([&["store"], arguments].concat()).args
    }

    #[test]
    fn a_file_for_pages_is_its_owners_alone_and_has_no_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pages");
        let name = path.to_str().expect("text");
        let made = file_of(&store(&["--size", "1MiB", "--backing", name]));
        let made = made.expect("a file").expect("asked for");
        let mode = made.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!path.exists());
    }

    #[test]
    fn a_size_above_the_highest_limit_needs_no_limit_and_one_that_is_given_is_named() {
        let none = settings(&store(&["--size", "200GiB"]), None).expect("no limit is given");
        assert!(none.limit_bytes <= MOST_LIMIT_BYTES);
        let given = settings(&store(&["--size", "200GiB", "--limit", "200GiB"]), None);
        let refused = given.expect_err("too high").to_string();
        assert_eq!(refused, "--limit must be 64KiB to 128GiB, not 200 GiB");
    }
}

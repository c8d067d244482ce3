//! What flags about a store come to: its settings, the schedule of its background, the file for what leaves memory.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use dyno_pages::{PAGE_BYTES, Schedule, Settings, Tiers, WriteBack};

use crate::args::{CodecArg, PagesStoreArgs, WriteBackArg};

/// Memory above the size: a page that is written over has two slots for a moment, and each size of slot has
/// a span that is not full.
const ROOM: u64 = 32 << 20;

/// Settings of the store; `file` is what [`file_of`] made.
pub fn settings(args: &PagesStoreArgs, file: Option<&File>) -> anyhow::Result<Settings> {
    let pages = args.size.div_ceil(PAGE_BYTES as u64);
    let limit = args.limit.unwrap_or(args.size.saturating_add(ROOM));
    Ok(Settings {
        share: args.share,
        tiers: tiers(args.codec),
        level: args.level,
        backing: match (file, file_pages(args)?) {
            (Some(file), Some(pages)) => Some((path_of(std::os::fd::AsFd::as_fd(file)), pages)),
            _ => None,
        },
        ..Settings::new(pages, limit)
    })
}

/// Pages of the file, when there is to be one.
pub fn file_pages(args: &PagesStoreArgs) -> anyhow::Result<Option<u32>> {
    if args.backing.is_none() {
        return Ok(None);
    }
    let bytes = args.backing_size.unwrap_or(args.size);
    let pages = u32::try_from(bytes / PAGE_BYTES as u64).ok();
    let pages = pages.filter(|&pages| pages > 0);
    let pages = pages.with_context(|| format!("--backing-size {bytes}: 4KiB to 128GiB can be"))?;
    Ok(Some(pages))
}

/// The file for pages that leave memory. It loses its name at once: its bytes mean something together with the memory
/// alone, and so it goes when the last process goes that has it.
pub fn file_of(args: &PagesStoreArgs) -> anyhow::Result<Option<File>> {
    let Some(path) = &args.backing else {
        return Ok(None);
    };
    let made = || format!("--backing {}: cannot make this file", path.display());
    let mut options = File::options();
    let options = options.read(true).write(true).create_new(true);
    let file = options.open(path).with_context(made)?;
    fs::remove_file(path).with_context(made)?;
    ensure!(
        file_pages(args)?.is_some(),
        "--backing-size: a file needs one"
    );
    Ok(Some(file))
}

/// Where a file without a name can be opened again, in this process.
pub fn path_of(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// What packs pages.
pub fn tiers(codec: CodecArg) -> Tiers {
    match codec {
        CodecArg::Lz4 => Tiers::Lz4,
        CodecArg::Zstd => Tiers::Zstd,
        CodecArg::Auto => Tiers::Lz4ThenZstd,
    }
}

/// Idle pages leave after one and a half times the idle time, when the second tier has had them; those that nothing
/// packs after half of it.
pub fn write_back(kind: WriteBackArg) -> WriteBack {
    let (packed, raw) = match kind {
        WriteBackArg::Idle => (Some(3), Some(3)),
        WriteBackArg::Incompressible => (None, Some(1)),
        WriteBackArg::Both => (Some(3), Some(1)),
    };
    WriteBack { packed, raw }
}

/// Pages idle for so long are packed again and written back, packing within a share of one processor.
pub fn schedule(idle: Duration, cpu_share: f64, kind: Option<WriteBackArg>) -> Schedule {
    let passes = Schedule::default().idle;
    Schedule {
        age_every: idle / u32::from(passes),
        cpu_share,
        write_back: kind.map(write_back),
        ..Schedule::default()
    }
}

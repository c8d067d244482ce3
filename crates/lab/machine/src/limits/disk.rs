//! The disk, past the page cache: our own threads against fio.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_io::{Access, AlignedBuffer, BlockFile, Caching, IoError};

use super::fio::{self, Job};
use super::measured::Measured;
use super::team::{self, Load};
use super::{REPETITIONS, Setting};
use crate::error::MachineError;

/// What is done to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pattern {
    name: &'static str,
    block_bytes: usize,
    write: bool,
    random: bool,
    /// Requests in flight, each a thread of ours.
    depth: usize,
}

impl Pattern {
    pub const WRITE_1MIB: Self = Self {
        name: "disk-write-1mib",
        block_bytes: 1 << 20,
        write: true,
        random: false,
        depth: 4,
    };
    pub const READ_1MIB: Self = Self {
        name: "disk-read-1mib",
        block_bytes: 1 << 20,
        write: false,
        random: false,
        depth: 4,
    };
    pub const WRITE_4K: Self = Self {
        name: "disk-write-4k",
        block_bytes: 4096,
        write: true,
        random: true,
        depth: 16,
    };
    pub const READ_4K: Self = Self {
        name: "disk-read-4k",
        block_bytes: 4096,
        write: false,
        random: true,
        depth: 16,
    };

    fn fio_mode(self) -> &'static str {
        match (self.write, self.random) {
            (true, true) => "randwrite",
            (true, false) => "write",
            (false, true) => "randread",
            (false, false) => "read",
        }
    }
}

/// Every 4 KiB page starts with its own number, so that no two are alike and a read can be checked.
const PAGE_BYTES: usize = 4096;

/// Bytes per second at the pattern's block size.
pub(super) fn disk(setting: &Setting<'_>, pattern: Pattern) -> Result<Measured, MachineError> {
    let fail = |error: IoError| MachineError::limit(pattern.name, error);
    let scratch = Scratch::new(setting, "disk-limit.data");
    let bytes: u64 = setting.pick(4 << 20, 256 << 20, 2 << 30);
    let caching = prepare(&scratch.path, bytes).map_err(fail)?;
    // Each thread has a part of the file to itself, so that no two write one block and a block that
    // is read has the number that its own offset gives.
    let share = bytes / pattern.depth as u64;
    let share = share - share % pattern.block_bytes as u64;
    let region = |index: usize| -> Result<Region, String> {
        let access = if pattern.write {
            Access::Update
        } else {
            Access::Read
        };
        let file = BlockFile::open(&scratch.path, access, caching).map_err(|e| e.to_string())?;
        Ok(Region::new(
            Arc::new(file),
            pattern,
            index as u64 * share,
            share,
        ))
    };
    let rates = team::rates(pattern.depth, REPETITIONS, setting.repetition(), region)
        .map_err(|reason| MachineError::limit(pattern.name, reason))?;
    let job = Job {
        mode: pattern.fio_mode(),
        block_bytes: pattern.block_bytes,
        file_bytes: bytes,
        depth: if pattern.random { 32 } else { 8 },
        direct: caching == Caching::Direct,
        sync_each: false,
        millis: setting.pick(200, 1_600, 3_000),
    };
    let tool = fio::bytes_per_s(&scratch.path, &job);
    Ok(Measured::rate(rates, "B/s", method(pattern, bytes, caching)).against(tool))
}

fn method(pattern: Pattern, bytes: u64, caching: Caching) -> String {
    let verb = if pattern.write { "wrote" } else { "read" };
    let order = if pattern.random {
        "random"
    } else {
        "sequential"
    };
    let how = match (caching, pattern.write) {
        (Caching::Direct, _) => "with O_DIRECT",
        (Caching::Cached, true) => {
            "through the page cache, as this file system refuses O_DIRECT, synced"
        }
        (Caching::Cached, false) => "from the page cache, as this file system refuses O_DIRECT",
    };
    format!(
        "{verb} {order} blocks of {} KiB in a file of {} MiB from {} threads {how}",
        pattern.block_bytes >> 10,
        bytes >> 20,
        pattern.depth
    )
}

/// A file of a measurement, which is removed whatever happens.
pub(super) struct Scratch {
    pub path: PathBuf,
}

impl Scratch {
    pub fn new(setting: &Setting<'_>, name: &str) -> Self {
        let path = setting.scratch.join(name);
        Self { path }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Already gone is fine, and a directory that cannot be cleaned shows at the next use.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Fills the file, since reading what was never written costs the disk nothing.
pub(super) fn prepare(path: &Path, bytes: u64) -> Result<Caching, IoError> {
    let (file, caching) = match BlockFile::open(path, Access::Create, Caching::Direct) {
        Ok(file) => (file, Caching::Direct),
        // Such as tmpfs and some network file systems. The figure then is of what programs get
        // there, and the method says so.
        Err(IoError::DirectRefused { .. }) => (
            BlockFile::open(path, Access::Create, Caching::Cached)?,
            Caching::Cached,
        ),
        Err(error) => return Err(error),
    };
    let mut block = random_block(1 << 20);
    for offset in (0..bytes).step_by(block.len()) {
        stamp(&mut block, offset);
        file.write_at(offset, &block)?;
    }
    file.sync()?;
    Ok(caching)
}

/// Bytes that neither disk nor file system can compress.
pub(super) fn random_block(bytes: usize) -> AlignedBuffer {
    let mut block = AlignedBuffer::zeroed(bytes);
    let mut state = 0x853c_49e6_748f_ea9bu64;
    for word in block.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    block
}

fn stamp(block: &mut [u8], offset: u64) {
    for (page, at) in block
        .chunks_exact_mut(PAGE_BYTES)
        .zip((offset..).step_by(PAGE_BYTES))
    {
        page[..8].copy_from_slice(&at.to_le_bytes());
    }
}

fn stamped(block: &[u8], offset: u64) -> bool {
    let mut pages = block
        .chunks_exact(PAGE_BYTES)
        .zip((offset..).step_by(PAGE_BYTES));
    pages.all(|(page, at)| page[..8] == at.to_le_bytes())
}

/// One thread's part of the file. Its passes are some milliseconds long.
struct Region {
    file: Arc<BlockFile>,
    pattern: Pattern,
    start: u64,
    blocks: u64,
    next: u64,
    state: u64,
    block: AlignedBuffer,
}

impl Region {
    fn new(file: Arc<BlockFile>, pattern: Pattern, start: u64, bytes: u64) -> Self {
        let blocks = bytes / pattern.block_bytes as u64;
        let block = random_block(pattern.block_bytes);
        Self {
            file,
            pattern,
            start,
            blocks,
            next: 0,
            state: start | 1,
            block,
        }
    }

    fn next_offset(&mut self) -> u64 {
        let block = if self.pattern.random {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            self.state % self.blocks
        } else {
            self.next += 1;
            (self.next - 1) % self.blocks
        };
        self.start + block * self.pattern.block_bytes as u64
    }

    fn one(&mut self) -> Result<(), String> {
        let offset = self.next_offset();
        if self.pattern.write {
            stamp(&mut self.block, offset);
            return self
                .file
                .write_at(offset, &self.block)
                .map_err(|e| e.to_string());
        }
        self.file
            .read_at(offset, &mut self.block)
            .map_err(|e| e.to_string())?;
        if stamped(&self.block, offset) {
            return Ok(());
        }
        Err(format!(
            "the block read at {offset} is not what was written there"
        ))
    }
}

impl Load for Region {
    fn pass(&mut self) -> Result<u64, String> {
        let operations = if self.pattern.random { 16 } else { 1 };
        for _ in 0..operations {
            self.one()?;
        }
        // Through the page cache a write only copies memory. It is made durable within the time
        // that is measured, or the limit of the disk would be that of the memory.
        if self.pattern.write && self.file.caching() == Caching::Cached {
            self.file.sync().map_err(|error| error.to_string())?;
        }
        Ok(operations * self.pattern.block_bytes as u64)
    }

    fn check(&mut self) -> Result<(), String> {
        if !self.pattern.write {
            return Ok(());
        }
        self.file.sync().map_err(|error| error.to_string())?;
        self.pattern.write = false;
        self.one()
    }
}

//! Making 4 KiB durable, one write after the other, in the quickest way that a log has: the blocks
//! of its file were written before. A write that makes a file longer, or is the first to a block,
//! also changes metadata, which takes some file systems twice as long.
//!
//! The processors are kept awake meanwhile, but not for fio, whose threads do not get on with those
//! that do it.

use std::path::Path;
use std::time::Instant;

use dyno_io::{Access, BlockFile, Caching, IoError};

use super::awake::Awake;
use super::disk::{Scratch, prepare, random_block};
use super::fio::{self, Job};
use super::measured::{Measured, median};
use super::{REPETITIONS, Setting};
use crate::error::MachineError;

const BLOCK_BYTES: usize = 4096;
const FILE_BYTES: u64 = 16 << 20;

/// Durable writes of 4 KiB per second, one after the other, against fio.
pub(super) fn rate(setting: &Setting<'_>) -> Result<Measured, MachineError> {
    let scratch = Scratch::new(setting, "fsync-limit.log");
    let (times, caching) =
        repetitions(setting, &scratch.path).map_err(|e| MachineError::limit("fsync", e))?;
    let job = Job {
        mode: "write",
        block_bytes: BLOCK_BYTES,
        file_bytes: FILE_BYTES,
        depth: 1,
        direct: caching == Caching::Direct,
        sync_each: true,
        millis: setting.pick(200, 1_600, 3_000),
    };
    let tool = fio::bytes_per_s(&scratch.path, &job).map(|mut tool| {
        tool.samples
            .iter_mut()
            .for_each(|rate| *rate /= BLOCK_BYTES as f64);
        tool
    });
    let rates = times
        .iter()
        .map(|t| t.len() as f64 * 1e9 / t.iter().sum::<f64>())
        .collect();
    Ok(Measured::rate(rates, "ops/s", method(caching)).against(tool))
}

/// Median time of one durable write.
pub(super) fn median_time(setting: &Setting<'_>) -> Result<Measured, MachineError> {
    let scratch = Scratch::new(setting, "fsync-limit.log");
    let (times, caching) =
        repetitions(setting, &scratch.path).map_err(|e| MachineError::limit("fsync-p50", e))?;
    let medians = times.iter().map(|times| median(times)).collect();
    let method = format!("{}: the median of each repetition", method(caching));
    Ok(Measured::time_ns(medians, method))
}

fn method(caching: Caching) -> String {
    let how = match caching {
        Caching::Direct => "with O_DIRECT",
        Caching::Cached => "through the page cache, as this file system refuses O_DIRECT,",
    };
    format!(
        "wrote 4 KiB {how} over blocks that had been written, each made durable by fdatasync before \
         the next, on processors that were kept awake"
    )
}

/// Nanoseconds of every write, by repetition.
fn repetitions(setting: &Setting<'_>, path: &Path) -> Result<(Vec<Vec<f64>>, Caching), IoError> {
    let caching = prepare(path, FILE_BYTES)?;
    let file = BlockFile::open(path, Access::Update, caching)?;
    let block = random_block(BLOCK_BYTES);
    let _awake = Awake::keep(setting.threads);
    // From the beginning of the file to its end, again and again.
    let mut places = (0..FILE_BYTES).step_by(BLOCK_BYTES).cycle();
    let mut write = || -> Result<f64, IoError> {
        let at = places.next().unwrap_or_default();
        let before = Instant::now();
        file.write_at(at, &block)?;
        file.sync()?;
        Ok(before.elapsed().as_nanos() as f64)
    };
    let mut repetition = || -> Result<Vec<f64>, IoError> {
        let started = Instant::now();
        // At least one write, on a disk that takes longer for it than a repetition lasts.
        let mut times = vec![write()?];
        while started.elapsed() < setting.repetition() {
            times.push(write()?);
        }
        Ok(times)
    };
    let times = (0..REPETITIONS)
        .map(|_| repetition())
        .collect::<Result<_, _>>()?;
    Ok((times, caching))
}

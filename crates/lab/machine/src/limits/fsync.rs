//! Making 4 KiB durable, one write after the other, in the quickest way that a log has: the blocks
//! of its file were written before. A write that makes a file longer, or is the first to a block,
//! also changes metadata, which takes some file systems twice as long.

use std::path::Path;
use std::time::{Duration, Instant};

use dyno_io::{
    Access, AlignedBuffer, Caching, HostFiles, IoError, Opening, Queue, Request, Settled, Storage,
    Syncing,
};

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
         the next"
    )
}

/// Nanoseconds of every write, by repetition.
fn repetitions(setting: &Setting<'_>, path: &Path) -> Result<(Vec<Vec<f64>>, Caching), IoError> {
    let caching = prepare(path, FILE_BYTES)?;
    let opening = Opening {
        access: Access::Update,
        caching,
        syncing: Syncing::EachWrite,
    };
    let mut log = Log {
        queue: HostFiles.queue(path, opening, 1)?,
        at: 0,
    };
    let mut block = random_block(BLOCK_BYTES);
    let mut times = Vec::new();
    for _ in 0..REPETITIONS {
        let repetition;
        (repetition, block) = log.writes(block, setting.repetition())?;
        times.push(repetition);
    }
    Ok((times, caching))
}

/// A file that is written from its beginning to its end, again and again.
struct Log {
    queue: Box<dyn Queue>,
    at: u64,
}

impl Log {
    /// Writes `block` for as long as `duration`. Returns the nanoseconds of each write, and the
    /// block.
    fn writes(
        &mut self,
        mut block: AlignedBuffer,
        duration: Duration,
    ) -> Result<(Vec<f64>, AlignedBuffer), IoError> {
        let started = Instant::now();
        let mut times = Vec::new();
        // At least one write, on a disk that takes longer for it than a repetition lasts.
        while times.is_empty() || started.elapsed() < duration {
            let before = Instant::now();
            block = self.write(block)?;
            times.push(before.elapsed().as_nanos() as f64);
        }
        Ok((times, block))
    }

    /// Writes one block and returns it when it is on stable storage.
    fn write(&mut self, block: AlignedBuffer) -> Result<AlignedBuffer, IoError> {
        let mut request = Request::new(block, self.at, BLOCK_BYTES);
        self.at = (self.at + BLOCK_BYTES as u64) % FILE_BYTES;
        loop {
            self.queue.submit(request)?;
            let completion = loop {
                // One write is in flight, so there is one to wait for.
                if let Some(completion) = self.queue.wait()? {
                    break completion;
                }
            };
            match completion.settle(self.queue.device())? {
                Settled::Written(request) => return Ok(request.buffer),
                Settled::Short(rest) => request = rest,
            }
        }
    }
}

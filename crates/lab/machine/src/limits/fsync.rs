//! Making 4 KiB durable: append and fdatasync, one after the other.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::fio::{self, Job};
use super::measured::{Measured, median};
use super::{REPETITIONS, Setting};
use crate::error::MachineError;

const BLOCK_BYTES: usize = 4096;

/// Durable appends of 4 KiB per second, one after the other, against fio.
pub(super) fn rate(setting: &Setting<'_>) -> Result<Measured, MachineError> {
    let path = setting.scratch.join("fsync-limit.log");
    let times = repetitions(setting, &path).map_err(|e| MachineError::limit("fsync", e));
    let job = Job {
        mode: "write",
        block_bytes: BLOCK_BYTES,
        file_bytes: 64 << 20,
        depth: 1,
        direct: false,
        sync_each: true,
        millis: setting.pick(200, 1_600, 3_000),
    };
    let tool = fio::bytes_per_s(&path, &job).map(|mut tool| {
        tool.samples
            .iter_mut()
            .for_each(|rate| *rate /= BLOCK_BYTES as f64);
        tool
    });
    remove(&path);
    let rates = times?
        .iter()
        .map(|t| t.len() as f64 * 1e9 / t.iter().sum::<f64>())
        .collect();
    let method = "appended 4 KiB and called fdatasync, one after the other on one thread";
    Ok(Measured::rate(rates, "ops/s", method).against(tool))
}

/// Median time of one durable append.
pub(super) fn median_time(setting: &Setting<'_>) -> Result<Measured, MachineError> {
    let path = setting.scratch.join("fsync-limit.log");
    let times = repetitions(setting, &path).map_err(|e| MachineError::limit("fsync-p50", e));
    remove(&path);
    let medians = times?.iter().map(|times| median(times)).collect();
    let method = "appended 4 KiB and called fdatasync on one thread: the median of each repetition";
    Ok(Measured::time_ns(medians, method))
}

/// Nanoseconds of every append, by repetition.
fn repetitions(setting: &Setting<'_>, path: &Path) -> io::Result<Vec<Vec<f64>>> {
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(path)?;
    (0..REPETITIONS)
        .map(|_| appends(&mut file, setting.repetition()))
        .collect()
}

fn appends(file: &mut File, duration: Duration) -> io::Result<Vec<f64>> {
    let block = [0x5a; BLOCK_BYTES];
    let started = Instant::now();
    let mut times = Vec::new();
    // At least one append, on a disk that takes longer for it than a repetition lasts.
    while times.is_empty() || started.elapsed() < duration {
        let before = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(before.elapsed().as_nanos() as f64);
    }
    Ok(times)
}

fn remove(path: &Path) {
    // Already gone is fine, and a directory that cannot be cleaned shows at the next use.
    let _ = fs::remove_file(path);
}

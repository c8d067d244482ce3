//! What the disk does while a flow writes at a rate, and what stood beside its slowest writes.
//!
//! A commit waits for the server's log to be on stable storage. So a file beside the server's is
//! written and synced all the while: when such a sync is slow too, the disk is what the commit
//! waited for. The server also makes new segments of its log, which it fills with zeros and syncs
//! before the first commit can use them, and at a checkpoint it writes and syncs its tables, beside
//! which commits sync the log.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dyno_measure::Clock;

use super::FlowError;
use super::shared::{Interval, Shared};

/// From one sync to the next: often enough to meet a stall of a few milliseconds, and far fewer
/// syncs than a server under load makes.
const EVERY: Duration = Duration::from_millis(5);
/// What is written before each sync: a page of the file system.
const PAGE: [u8; 4_096] = [0x5a; 4_096];
/// The slowest hundredth, which p99 is the border of.
const SLOWEST: f64 = 0.01;

/// A checkpoint pauses between its writes for less than this, and syncs for less than this before
/// its last one.
const CHECKPOINT_PAUSE_NS: u64 = 2_000_000_000;

/// What was seen beside a flow.
#[derive(Debug, Default)]
pub(super) struct DiskWatch {
    /// Each write of a page with its sync.
    syncs: Vec<Interval>,
    /// When the server was making a segment of its log.
    segments: Vec<Interval>,
    /// When a checkpoint was under way.
    checkpoints: Vec<Interval>,
}

/// The server that is watched.
#[derive(Debug)]
pub(super) struct Watched {
    /// The directory of its files.
    pub files: PathBuf,
    /// The process that writes its checkpoints.
    pub checkpointer: Option<u32>,
}

impl DiskWatch {
    /// Watches until the flow is stopped.
    pub fn watch(shared: &Shared, server: &Watched) -> Result<DiskWatch, FlowError> {
        DiskWatch::until_stopped(shared, server).map_err(|error| {
            let files = server.files.display();
            FlowError::Way(format!("cannot watch the disk of {files}: {error}"))
        })
    }

    fn until_stopped(shared: &Shared, server: &Watched) -> io::Result<DiskWatch> {
        let path = server.files.with_file_name("disk_watch");
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(&path)?;
        // The page is there before the clock starts, so that no sync has to write where the file's
        // blocks are.
        sync(&file)?;
        let mut seen = DiskWatch::default();
        let log = server.files.join("data/pg_wal");
        let mut written = server.checkpointer.and_then(written_bytes);
        while !shared.stop.load(Ordering::Relaxed) {
            thread::sleep(EVERY);
            let began_ns = shared.clock.now_ns();
            if makes_segment(&log)? {
                let from_ns = began_ns.saturating_sub(EVERY.as_nanos() as u64);
                seen.segments.push((from_ns, began_ns));
            }
            let written_now = server.checkpointer.and_then(written_bytes);
            if written_now > written {
                written = written_now;
                join(&mut seen.checkpoints, began_ns);
            }
            let began_ns = shared.clock.now_ns();
            sync(&file)?;
            seen.syncs.push((began_ns, shared.clock.now_ns()));
        }
        fs::remove_file(&path)?;
        Ok(seen)
    }

    /// The syncs' own quantiles in milliseconds, and of the slowest hundredth of `writes` the
    /// percentage beside which the disk was as slow as it is once in a hundred syncs, a segment was
    /// made, or a checkpoint was under way.
    pub fn metrics(&self, writes: &[Interval]) -> BTreeMap<String, f64> {
        let mut metrics = BTreeMap::new();
        let quantiles = (quantile(&self.syncs, 0.5), quantile(&self.syncs, 0.99));
        let (Some(p50), Some(p99)) = quantiles else {
            return metrics;
        };
        let mut tell = |name: &str, value: f64| metrics.insert(name.to_owned(), value);
        tell("disk-sync-p50", p50 as f64 / 1e6);
        tell("disk-sync-p99", p99 as f64 / 1e6);
        let slowest = slowest_of(writes);
        if !slowest.is_empty() {
            let beside = |those: &[Interval]| percent_beside(&slowest, those);
            tell("slow-beside-sync-percent", beside(&slowest_of(&self.syncs)));
            tell("slow-beside-segment-percent", beside(&self.segments));
            tell("slow-beside-checkpoint-percent", beside(&self.checkpoints));
        }
        metrics
    }
}

fn sync(file: &File) -> io::Result<()> {
    file.write_all_at(&PAGE, 0)?;
    file.sync_data()
}

/// Whether the server is filling a segment of its log, whose file has this name until it is full.
fn makes_segment(log: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(log)? {
        if entry?
            .file_name()
            .to_string_lossy()
            .starts_with("xlogtemp.")
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Bytes that a process has handed to the kernel to write so far.
fn written_bytes(pid: u32) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    io.lines()
        .find_map(|line| line.strip_prefix("wchar: "))?
        .parse()
        .ok()
}

/// Adds a write of a checkpoint at `at_ns` to the checkpoint that it belongs to.
fn join(checkpoints: &mut Vec<Interval>, at_ns: u64) {
    match checkpoints.last_mut() {
        Some(last) if at_ns - last.1 < CHECKPOINT_PAUSE_NS => last.1 = at_ns,
        _ => checkpoints.push((at_ns, at_ns)),
    }
}

fn took_ns((began_ns, ended_ns): &Interval) -> u64 {
    ended_ns.saturating_sub(*began_ns)
}

fn quantile(intervals: &[Interval], p: f64) -> Option<u64> {
    let mut took: Vec<u64> = intervals.iter().map(took_ns).collect();
    took.sort_unstable();
    took.get((took.len() as f64 * p) as usize).copied()
}

fn slowest_of(intervals: &[Interval]) -> Vec<Interval> {
    let mut intervals = intervals.to_vec();
    intervals.sort_unstable_by_key(|interval| std::cmp::Reverse(took_ns(interval)));
    intervals.truncate((intervals.len() as f64 * SLOWEST).ceil() as usize);
    intervals
}

/// The percentage of `these` during which one of `those` was under way.
fn percent_beside(these: &[Interval], those: &[Interval]) -> f64 {
    let met = |this: &&Interval| those.iter().any(|that| that.0 < this.1 && that.1 > this.0);
    100.0 * these.iter().filter(met).count() as f64 / these.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_writes_are_laid_beside_slow_syncs_and_new_segments() {
        // Syncs of 1 ms every 10 ms, of which the 50th and the 150th of 200 take 9 ms; a segment is
        // made at 1,000 ms.
        let ms = |at: u64, took: u64| (at * 1_000_000, (at + took) * 1_000_000);
        let syncs = (0..200)
            .map(|at| ms(at * 10, if at % 100 == 50 { 9 } else { 1 }))
            .collect();
        let mut checkpoints = Vec::new();
        for at_ms in [200, 290, 310, 5_000] {
            join(&mut checkpoints, at_ms * 1_000_000);
        }
        assert_eq!(checkpoints, [ms(200, 110), ms(5_000, 0)]);
        let segments = vec![ms(1_000, 5)];
        let watch = DiskWatch {
            syncs,
            segments,
            checkpoints,
        };
        // Four of 400 writes are slow: two beside a slow sync, one beside the segment, one beside a
        // checkpoint.
        let slow = [ms(500, 8), ms(1_503, 8), ms(999, 8), ms(300, 8)];
        let quick = (0..396).map(|at| ms(at * 5, 2));
        let metrics = watch.metrics(&slow.into_iter().chain(quick).collect::<Vec<_>>());
        let metric = |name: &str| metrics[name];
        assert!((metric("disk-sync-p50") - 1.0).abs() < 1e-9);
        assert!((metric("disk-sync-p99") - 9.0).abs() < 1e-9);
        assert!((metric("slow-beside-sync-percent") - 50.0).abs() < 1e-9);
        assert!((metric("slow-beside-segment-percent") - 25.0).abs() < 1e-9);
        assert!((metric("slow-beside-checkpoint-percent") - 25.0).abs() < 1e-9);
        assert!(watch.metrics(&[]).contains_key("disk-sync-p99"));
        assert!(DiskWatch::default().metrics(&slow).is_empty());
    }
}

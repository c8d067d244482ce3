//! Whether a long run stays as it began: memory of each kind of process, disk, dead rows, p99 of each minute.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::history::{Event, What};

/// How much higher the last third may be than the first, as a share.
const GROWTH_MAX: f64 = 0.25;

/// Shorter soaks are not judged, seconds.
const JUDGED_FROM_S: f64 = 600.0;

/// What is sampled, at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// From the beginning of the soak, seconds.
    pub at_s: f64,
    /// Private memory by kind of process, bytes.
    pub memory_bytes: BTreeMap<String, u64>,
    /// Of the server's folder without its write-ahead log, bytes.
    pub disk_bytes: u64,
    /// Of the server's write-ahead log, bytes.
    pub log_bytes: u64,
    /// In the tables of the schema.
    pub dead_rows: i64,
}

/// One quantity over the soak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// What it is, with its unit.
    pub name: String,
    /// Median of the first third.
    pub begin: f64,
    /// Median of the last third.
    pub end: f64,
    /// Whether it did not grow by more than a quarter, or by less than the quantity's grain; of the write-ahead
    /// log, whether it stayed within its bound.
    pub flat: bool,
}

/// What a soak has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Soaked {
    /// How long, seconds.
    pub seconds: f64,
    /// What was seen, every few seconds.
    pub samples: Vec<Sample>,
    /// From due to acknowledged, of each whole minute, milliseconds.
    pub p99_ms: Vec<f64>,
    /// The judgement.
    pub trends: Vec<Trend>,
}

impl Soaked {
    /// Judges what was sampled. The server's write-ahead log grows until a checkpoint is due, minutes or hours
    /// after the start, so it is held to its bound, `log_most_bytes`, and not to its beginning.
    pub fn judge(
        seconds: f64,
        samples: Vec<Sample>,
        p99_ms: Vec<f64>,
        log_most_bytes: u64,
    ) -> Self {
        let mut trends = Vec::new();
        let kinds: Vec<String> = samples
            .last()
            .map(|sample| sample.memory_bytes.keys().cloned().collect())
            .unwrap_or_default();
        for kind in kinds {
            let values = samples.iter().filter_map(|s| s.memory_bytes.get(&kind));
            let values: Vec<f64> = values.map(|bytes| *bytes as f64).collect();
            trends.push(trend(format!("memory of {kind}, bytes"), &values, 8e6));
        }
        let disk: Vec<f64> = samples.iter().map(|s| s.disk_bytes as f64).collect();
        trends.push(trend("disk, bytes".to_owned(), &disk, 64e6));
        let log: Vec<f64> = samples.iter().map(|s| s.log_bytes as f64).collect();
        let log = trend("write-ahead log, bytes".to_owned(), &log, 64e6);
        trends.push(Trend {
            flat: log.end <= log_most_bytes as f64,
            ..log
        });
        let dead: Vec<f64> = samples.iter().map(|s| s.dead_rows as f64).collect();
        trends.push(trend("dead rows".to_owned(), &dead, 2000.0));
        trends.push(trend("p99 of a minute, ms".to_owned(), &p99_ms, 5.0));
        Self {
            seconds,
            samples,
            p99_ms,
            trends,
        }
    }

    /// Whether it was long enough to tell growth from a beginning: a log grows until retention and the server's
    /// own recycling have something to take.
    pub fn is_long(&self) -> bool {
        self.seconds >= JUDGED_FROM_S
    }

    /// Whether everything stayed flat.
    pub fn flat(&self) -> bool {
        self.trends.iter().all(|trend| trend.flat)
    }
}

/// Compares the medians of the first and the last third; below `grain` nothing is growth.
fn trend(name: String, values: &[f64], grain: f64) -> Trend {
    let third = values.len().div_ceil(3);
    let begin = median(&values[..third.min(values.len())]);
    let end = median(&values[values.len() - third.min(values.len())..]);
    Trend {
        name,
        begin,
        end,
        flat: end <= begin + (begin * GROWTH_MAX).max(grain),
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Memory that a process shares with nobody, bytes; `None` once it is gone.
pub fn private_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Where a server keeps its write-ahead log, below its folder.
const LOG_FOLDER: &str = "pg_wal";

/// Space that the files below a server's folder take, bytes: the write-ahead log, and all else. What is removed
/// meanwhile does not count.
pub fn disk_bytes(dir: &Path) -> (u64, u64) {
    let Ok(entries) = fs::read_dir(dir) else {
        return (0, 0);
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => {
            let (log, rest) = disk_bytes(&entry.path());
            match entry.file_name() == LOG_FOLDER {
                true => (log + rest, 0),
                false => (log, rest),
            }
        }
        Ok(data) => (0, data.len()),
        Err(_) => (0, 0),
    });
    sizes.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// The p99 from due to acknowledged of each whole minute from `from_us` on, milliseconds.
pub fn p99_by_minute(events: &[Event], from_us: i64) -> Vec<f64> {
    const MINUTE_US: i64 = 60_000_000;
    let mut due = std::collections::HashMap::new();
    let mut minutes: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for event in events {
        match event.what {
            What::Send { stamp, due_us } => _ = due.insert(stamp.identity, due_us),
            What::Acknowledged { identity, .. } => {
                if let Some(due_us) = due.remove(&identity)
                    && due_us >= from_us
                {
                    let minute = minutes.entry((due_us - from_us) / MINUTE_US);
                    let took_ms = (event.at_us - due_us) as f64 / 1000.0;
                    minute.or_default().push(took_ms);
                }
            }
            _ => {}
        }
    }
    // The last minute is not whole.
    minutes.pop_last();
    minutes
        .into_values()
        .map(|mut all| {
            all.sort_by(f64::total_cmp);
            all[(all.len() * 99 / 100).min(all.len() - 1)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soaked(disk: impl Fn(u64) -> u64, log_most_bytes: u64) -> Soaked {
        let sample = |at: u64| Sample {
            at_s: at as f64,
            memory_bytes: BTreeMap::from([("broker".to_owned(), 50_000_000)]),
            disk_bytes: disk(at),
            log_bytes: at * 1_000_000,
            dead_rows: 100,
        };
        let samples = (0..30).map(sample).collect();
        Soaked::judge(30.0, samples, vec![3.0; 5], log_most_bytes)
    }

    #[test]
    fn what_stays_is_flat_and_what_grows_is_not() {
        let grew = |soaked: Soaked| -> Vec<String> {
            let grown = soaked.trends.into_iter().filter(|trend| !trend.flat);
            grown.map(|trend| trend.name).collect()
        };
        assert!(soaked(|at| 1_000_000_000 + at % 7, 1 << 30).flat());
        let grown = soaked(|at| 1_000_000_000 + at * 30_000_000, 1 << 30);
        assert!(!grown.flat());
        assert_eq!(grew(grown), ["disk, bytes"]);
        assert_eq!(grew(soaked(|_| 7, 1 << 20)), ["write-ahead log, bytes"]);
    }

    #[test]
    fn the_write_ahead_log_is_told_from_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("data/pg_wal/archive_status")).unwrap();
        fs::create_dir_all(dir.path().join("data/base")).unwrap();
        for (name, bytes) in [
            ("pg_wal/1", 10),
            ("pg_wal/archive_status/2", 5),
            ("base/3", 7),
        ] {
            fs::write(dir.path().join("data").join(name), vec![0; bytes]).unwrap();
        }
        assert_eq!(disk_bytes(dir.path()), (15, 7));
    }

    #[test]
    fn the_own_process_has_memory() {
        assert!(private_bytes(std::process::id()).unwrap() > 10_000);
    }
}

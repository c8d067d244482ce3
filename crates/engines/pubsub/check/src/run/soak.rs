//! Whether a long run stays as it began: memory of each kind of process, disk, dead rows, p99 of
//! each minute.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dyno_soak::Trend;
use serde::{Deserialize, Serialize};

use crate::history::{Event, What};

/// One sample of a soak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// From the beginning of the soak, seconds.
    pub at_s: f64,
    /// Private memory by kind of process, bytes.
    pub memory_bytes: BTreeMap<String, u64>,
    /// The size of the server's directory without its write-ahead log, in bytes.
    pub disk_bytes: u64,
    /// The size of the server's write-ahead log, in bytes.
    pub log_bytes: u64,
    /// How many dead rows the tables of the schema have.
    pub dead_rows: i64,
}

/// What a soak has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Soaked {
    /// How long the soak took, in seconds.
    pub seconds: f64,
    /// What was seen, every few seconds.
    pub samples: Vec<Sample>,
    /// From due to acknowledged, of each whole minute, milliseconds.
    pub p99_ms: Vec<f64>,
    /// The judgement of each quantity.
    pub trends: Vec<Trend>,
}

impl Soaked {
    /// Judges what was sampled. The server's write-ahead log grows until a checkpoint is due,
    /// minutes or hours after the start, so it is held to its bound, `log_most_bytes`, and not to
    /// its beginning.
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
            trends.push(Trend::from_values(
                format!("memory of {kind}, bytes"),
                &values,
                8e6,
            ));
        }
        let disk: Vec<f64> = samples.iter().map(|s| s.disk_bytes as f64).collect();
        trends.push(Trend::from_values("disk, bytes", &disk, 64e6));
        let log: Vec<f64> = samples.iter().map(|s| s.log_bytes as f64).collect();
        let log = Trend::from_values("write-ahead log, bytes", &log, 64e6);
        trends.push(Trend {
            flat: log.end <= log_most_bytes as f64,
            ..log
        });
        let dead: Vec<f64> = samples.iter().map(|s| s.dead_rows as f64).collect();
        trends.push(Trend::from_values("dead rows", &dead, 2000.0));
        trends.push(Trend::from_values("p99 of a minute, ms", &p99_ms, 5.0));
        Self {
            seconds,
            samples,
            p99_ms,
            trends,
        }
    }

    /// Whether it was long enough to be judged.
    pub fn is_long(&self) -> bool {
        dyno_soak::is_long(self.seconds)
    }

    /// Whether no quantity has grown.
    pub fn flat(&self) -> bool {
        self.trends.iter().all(|trend| trend.flat)
    }
}

/// Where a server keeps its write-ahead log, below its folder.
const LOG_FOLDER: &str = "pg_wal";

/// Space that the files below a server's folder take, bytes: the write-ahead log, and all else.
/// What is removed meanwhile does not count.
pub fn disk_bytes(dir: &Path) -> (u64, u64) {
    let Ok(entries) = fs::read_dir(dir) else {
        return (0, 0);
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => {
            let (log, rest) = disk_bytes(&entry.path());
            if entry.file_name() == LOG_FOLDER {
                (log + rest, 0)
            } else {
                (log, rest)
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
            What::Send {
                fingerprint,
                due_us,
            } => _ = due.insert(fingerprint.identity, due_us),
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
    // The last minute is cut short, so its p99 is of too few messages.
    minutes.pop_last();
    minutes
        .into_values()
        .map(|mut all| dyno_soak::p99(&mut all))
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
}

//! Judges whether a long run stays as it began, by one rule for the soaks of all engines.
//!
//! [`Trend`] compares the first third of a quantity with the last, and [`private_bytes`] reads the
//! memory of a process. The load and the clock are the caller's.
//!
//! ```
//! use dyno_soak::{Trend, is_long};
//!
//! let bytes = [50e6, 52e6, 51e6, 53e6, 52e6, 54e6];
//! let memory = Trend::from_values("memory of server, bytes", &bytes, 8e6);
//! assert!(memory.flat);
//! let milliseconds = [4.0, 5.0, 9.0, 14.0, 20.0, 31.0];
//! let latency = Trend::from_values("p99 of a minute, ms", &milliseconds, 5.0);
//! assert!(!latency.flat);
//! assert!(!is_long(120.0), "two minutes show no growth");
//! ```

use std::fs;

use serde::{Deserialize, Serialize};

/// The last third may be higher than the first by this share.
const GROWTH_MAX: f64 = 0.25;

/// Soaks of fewer seconds are not judged.
const JUDGED_FROM_S: f64 = 600.0;

/// One quantity over the soak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// The name of the quantity, with its unit.
    pub name: String,
    /// Median of the first third.
    pub begin: f64,
    /// Median of the last third.
    pub end: f64,
    /// Whether it did not grow by more than a quarter, or by less than the quantity's grain.
    pub flat: bool,
}

impl Trend {
    /// Compares the medians of the first and the last third. A rise below `grain`, in the unit of
    /// the values, does not count as growth.
    pub fn from_values(name: impl Into<String>, values: &[f64], grain: f64) -> Trend {
        let third = values.len().div_ceil(3);
        let begin = median(&values[..third.min(values.len())]);
        let end = median(&values[values.len() - third.min(values.len())..]);
        Trend {
            name: name.into(),
            begin,
            end,
            flat: end <= begin + (begin * GROWTH_MAX).max(grain),
        }
    }
}

/// Whether a soak was long enough to tell growth from a start. What a server keeps grows at first,
/// until the oldest of it may be dropped.
pub fn is_long(seconds: f64) -> bool {
    seconds >= JUDGED_FROM_S
}

/// The 99th percentile of `values`, which it sorts; 0 without values.
pub fn p99(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() * 99 / 100).min(values.len().saturating_sub(1));
    values.get(at).copied().unwrap_or(0.0)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Bytes of memory that a process does not share with another; `None` once the process has ended.
pub fn private_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_by_more_than_a_quarter_and_the_grain_is_seen() {
        let rising = |by: f64| {
            (0..30)
                .map(|at| 100.0 + by * f64::from(at))
                .collect::<Vec<_>>()
        };
        assert!(Trend::from_values("x", &rising(0.1), 1.0).flat);
        assert!(!Trend::from_values("x", &rising(3.0), 1.0).flat);
        assert!(Trend::from_values("x", &rising(3.0), 1000.0).flat);
        assert!(Trend::from_values("nothing", &[], 1.0).flat);
    }

    #[test]
    fn the_99th_percentile_is_nearly_the_last() {
        let mut values: Vec<f64> = (0..200).rev().map(f64::from).collect();
        assert_eq!(p99(&mut values), 198.0);
        assert_eq!(p99(&mut [7.0]), 7.0);
        assert_eq!(p99(&mut []), 0.0);
    }

    #[test]
    fn the_own_process_has_memory() {
        assert!(private_bytes(std::process::id()).is_some_and(|bytes| bytes > 10_000));
    }
}

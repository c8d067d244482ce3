//! A limit that two methods measure is one limit.

use dyno_record::{Better, Ceiling, Figures};

use super::unit::convert;
use super::{Finding, Severity};
use crate::units::quantity;

/// Two tools do not do quite the same.
const TOLERANCE: f64 = 1.25;
/// A disk that writes so many times as fast as it reads did not write. Small blocks are left out: a
/// drive takes a single one into its buffer, but has to fetch it from the cells.
const WRITE_AHEAD: f64 = 1.5;
const SMALL_BLOCKS: [&str; 3] = ["4k", "rand", "512"];

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let apart = figures.limits.iter().filter_map(|limit| {
        let other = limit.independent?;
        let gap = (limit.value / other).max(other / limit.value);
        (gap > TOLERANCE).then(|| methods(limit, other))
    });
    let cached = figures.limits.iter().filter_map(|write| {
        // Of a time the larger value is the worse one: writes that take longer than reads went to
        // the disk.
        if write.better == Better::Lower {
            return None;
        }
        if SMALL_BLOCKS.iter().any(|word| write.name.contains(word)) {
            return None;
        }
        let name = write.name.replace("write", "read");
        let mut others = figures.limits.iter();
        let read = others.find(|other| other.name == name && name != write.name)?;
        let read_value = convert(read.value, &read.unit, &write.unit)?;
        let cached = write.value > read_value * WRITE_AHEAD;
        cached.then(|| written(write, read_value))
    });
    apart.chain(cached).collect()
}

fn methods(limit: &Ceiling, other: f64) -> Finding {
    Finding::new(
        "two-methods",
        Severity::Warning,
        &limit.name,
        format!(
            "{} by one method, {} by another",
            quantity(limit.value, &limit.unit),
            quantity(other, &limit.unit)
        ),
        "One of the two measured something else, and a share of this limit is wrong by that much.",
        "Find what the faster one left out (a flush, a copy), and measure again.",
    )
}

fn written(write: &Ceiling, read_value: f64) -> Finding {
    Finding::new(
        "write-above-read",
        Severity::Warning,
        &write.name,
        format!(
            "{} written, where reading gives {}",
            quantity(write.value, &write.unit),
            quantity(read_value, &write.unit)
        ),
        "Few disks write faster than they read: the writes ended in a cache.",
        "Write more than the memory holds, and flush inside the clock.",
    )
}

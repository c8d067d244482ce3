//! Compares the readers of one log, which are plain SQL and the library.

use super::Reading;
use super::violation::{Findings, Rule};

pub fn check(readings: &[Reading], findings: &mut Findings) {
    let Some((first, others)) = readings.split_first() else {
        return;
    };
    for other in others {
        let pairs = first.partitions.iter().zip(&other.partitions);
        for (partition, (one, two)) in pairs.enumerate() {
            let bounds = |log: &super::PartitionLog| (log.first_offset, log.next_offset);
            if one.entries.len() != two.entries.len() || bounds(one) != bounds(two) {
                findings.add(Rule::ReadersAgree, || {
                    format!(
                        "partition {partition}: {} read {} messages of offsets {:?}, and {} {} of {:?}",
                        first.reader,
                        one.entries.len(),
                        bounds(one),
                        other.reader,
                        two.entries.len(),
                        bounds(two),
                    )
                });
            }
            // Only the first difference is reported. What follows a missing message differs, too,
            // and says nothing new.
            let differing = one.entries.iter().zip(&two.entries).find(|(a, b)| a != b);
            if let Some((a, b)) = differing {
                findings.add(Rule::ReadersAgree, || {
                    format!(
                        "partition {partition}: {} read {a:?}, and {} read {b:?} in its place",
                        first.reader, other.reader
                    )
                });
            }
        }
    }
}

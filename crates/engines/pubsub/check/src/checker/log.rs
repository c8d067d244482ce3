//! The log as one reader saw it, against what producers sent and were answered.

use std::collections::HashMap;

use super::sends::{Fate, Sends};
use super::violation::{Findings, Rule};
use super::{Entry, Evidence, PartitionLog, Reading};
use crate::message::{Fingerprint, Identity};

/// One partition of one reading.
struct Location<'a> {
    reader: &'a str,
    partition: u32,
}

impl std::fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "partition {} (read by {})", self.partition, self.reader)
    }
}

pub fn check(evidence: &Evidence<'_>, reading: &Reading, sends: &Sends, findings: &mut Findings) {
    if reading.partitions.len() != evidence.partitions as usize {
        findings.add(Rule::Contiguous, || {
            format!(
                "{} read {} partitions, and the topic has {}",
                reading.reader,
                reading.partitions.len(),
                evidence.partitions
            )
        });
        return;
    }
    let mut stored: HashMap<Identity, (u32, i64)> = HashMap::new();
    for (partition, log) in (0..).zip(&reading.partitions) {
        let location = Location {
            reader: &reading.reader,
            partition,
        };
        contiguous(&location, log, findings);
        let mut latest: HashMap<u32, (u64, i64)> = HashMap::new();
        for entry in &log.entries {
            if let Some(fingerprint) = readable(&location, entry, findings) {
                sent(&location, entry.offset, fingerprint, sends, findings);
                once(&location, entry.offset, fingerprint, &mut stored, findings);
                in_order(&location, entry.offset, fingerprint, &mut latest, findings);
            }
        }
    }
    promises_kept(reading, sends, &stored, findings);
}

/// Checks that offsets run from the first to the next without a gap.
fn contiguous(location: &Location<'_>, log: &PartitionLog, findings: &mut Findings) {
    let mut expected = log.first_offset;
    for entry in &log.entries {
        if entry.offset != expected {
            findings.add(Rule::Contiguous, || {
                let offset = entry.offset;
                format!("{location}: offset {expected} should come, and offset {offset} is there")
            });
        }
        // Counting goes on from what is there, so that one gap is reported once and not again at
        // every later offset.
        expected = entry.offset + 1;
    }
    if expected != log.next_offset {
        findings.add(Rule::Contiguous, || {
            let next = log.next_offset;
            format!(
                "{location}: offset {next} is said to be the next, and the log ends before {expected}"
            )
        });
    }
}

fn readable(
    location: &Location<'_>,
    entry: &Entry,
    findings: &mut Findings,
) -> Option<Fingerprint> {
    match &entry.fingerprint {
        Ok(fingerprint) => Some(*fingerprint),
        Err(reason) => {
            findings.add(Rule::Unchanged, || {
                format!("{location}: offset {} is damaged: {reason}", entry.offset)
            });
            None
        }
    }
}

/// Checks that a client sent the message with this content to this partition, and was not told that
/// it failed.
fn sent(
    location: &Location<'_>,
    offset: i64,
    fingerprint: Fingerprint,
    sends: &Sends,
    findings: &mut Findings,
) {
    let identity = fingerprint.identity;
    let Some((checksum, fate)) = sends.find(&identity) else {
        findings.add(Rule::NothingInvented, || {
            format!("{location}: offset {offset} holds {identity}, which was never sent")
        });
        return;
    };
    if checksum != fingerprint.checksum {
        findings.add(Rule::Unchanged, || {
            let found = fingerprint.checksum;
            format!(
                "{location}: offset {offset} holds {identity} with checksum {found:016x}, \
                 and it was sent with {checksum:016x}"
            )
        });
    }
    if identity.partition != location.partition {
        findings.add(Rule::RightPartition, || {
            format!("{location}: offset {offset} holds {identity}")
        });
    }
    if fate == Fate::Failed {
        findings.add(Rule::FailedIsAbsent, || {
            format!(
                "{location}: offset {offset} holds {identity}, which its producer was told had failed"
            )
        });
    }
}

fn once(
    location: &Location<'_>,
    offset: i64,
    fingerprint: Fingerprint,
    stored: &mut HashMap<Identity, (u32, i64)>,
    findings: &mut Findings,
) {
    let identity = fingerprint.identity;
    if let Some((partition, before)) = stored.insert(identity, (location.partition, offset)) {
        findings.add(Rule::NothingTwice, || {
            format!(
                "{location}: {identity} is at offset {offset}, and at offset {before} of partition \
                 {partition} too"
            )
        });
    }
}

/// Checks that each producer's sequences grow with the offset.
fn in_order(
    location: &Location<'_>,
    offset: i64,
    fingerprint: Fingerprint,
    latest: &mut HashMap<u32, (u64, i64)>,
    findings: &mut Findings,
) {
    let identity = fingerprint.identity;
    let now = (identity.sequence, offset);
    if let Some((sequence, before)) = latest.insert(identity.producer, now)
        && sequence > identity.sequence
    {
        findings.add(Rule::ProducerOrder, || {
            format!(
                "{location}: offset {offset} holds {identity}, after its message {sequence} at offset \
                 {before}"
            )
        });
    }
}

/// Checks that every acknowledged message is in the log at the offset that was said, unless
/// retention has removed it since.
fn promises_kept(
    reading: &Reading,
    sends: &Sends,
    stored: &HashMap<Identity, (u32, i64)>,
    findings: &mut Findings,
) {
    for (identity, promised) in sends.promises() {
        let reader = &reading.reader;
        match stored.get(&identity) {
            // A repetition that came very late is acknowledged without an offset, because the
            // server does not know it any more.
            Some((_, offset)) if *offset == promised || promised < 0 => {}
            Some((partition, offset)) => findings.add(Rule::StoredWhereSaid, || {
                format!(
                    "{identity} was acknowledged at offset {promised}, and is at offset {offset} \
                     of partition {partition} (read by {reader})"
                )
            }),
            None => {
                let log = reading.partitions.get(identity.partition as usize);
                // Below the first offset retention may have removed it. Without an offset nothing
                // excuses its absence.
                if log.is_some_and(|log| promised < 0 || promised >= log.first_offset) {
                    findings.add(Rule::AcknowledgedIsStored, || {
                        format!(
                            "{identity} was acknowledged at offset {promised}, and is not in the \
                             log (read by {reader})"
                        )
                    });
                }
            }
        }
    }
}

//! The deliveries to groups, against what is in the log.

use std::collections::HashMap;

use super::sends::Sends;
use super::violation::{Findings, Rule};
use super::{Evidence, PartitionLog};
use crate::history::{Delivery, What};

/// When each offset was first delivered, by group and partition.
#[derive(Debug)]
pub struct Deliveries {
    partitions: u32,
    tracks: Vec<Track>,
}

/// The deliveries to one group from one partition.
#[derive(Debug, Default, Clone)]
pub struct Track {
    /// By offset: when it was first delivered, in microseconds since 1970; `None` if it never was.
    first_us: Vec<Option<i64>>,
    total: u64,
    again: u64,
}

impl Deliveries {
    pub fn track(&self, group: u32, partition: u32) -> Option<&Track> {
        self.tracks.get(index(self.partitions, group, partition))
    }

    pub fn total(&self) -> u64 {
        self.tracks.iter().map(|track| track.total).sum()
    }

    pub fn again(&self) -> u64 {
        self.tracks.iter().map(|track| track.again).sum()
    }
}

impl Track {
    /// The first offset from `from` up to `next` that was not delivered by `at_us`, or with `None`
    /// never.
    pub fn missing_below(&self, from: i64, next: i64, at_us: Option<i64>) -> Option<i64> {
        (from.max(0)..next).find(|offset| !self.by(*offset, at_us))
    }

    /// Whether an offset was delivered by `at_us`, or with `None` ever.
    fn by(&self, offset: i64, at_us: Option<i64>) -> bool {
        let first = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.first_us.get(offset).copied().flatten());
        first.is_some_and(|first| at_us.is_none_or(|at| first <= at))
    }

    fn count(&mut self, offset: usize, at_us: i64) {
        if self.first_us.len() <= offset {
            self.first_us.resize(offset + 1, None);
        }
        self.total += 1;
        match &mut self.first_us[offset] {
            Some(first) => {
                self.again += 1;
                // Clients' lines arrive through pipes of their own, so not always in order.
                *first = at_us.min(*first);
            }
            none => *none = Some(at_us),
        }
    }
}

fn index(partitions: u32, group: u32, partition: u32) -> usize {
    group as usize * partitions as usize + partition as usize
}

pub fn check(evidence: &Evidence<'_>, sends: &Sends, findings: &mut Findings) -> Deliveries {
    let tracks = (evidence.groups * evidence.partitions) as usize;
    let mut deliveries = Deliveries {
        partitions: evidence.partitions,
        tracks: vec![Track::default(); tracks],
    };
    let mut order = Order::default();
    for event in evidence.events {
        let What::Delivered(delivery) = event.what else {
            continue;
        };
        if delivery.group >= evidence.groups || delivery.partition >= evidence.partitions {
            findings.add(Rule::DeliveredIsStored, || {
                format!("{}: there is no such group or partition", named(&delivery))
            });
            continue;
        }
        let log = evidence
            .readings
            .first()
            .and_then(|reading| reading.partitions.get(delivery.partition as usize));
        if stored(&delivery, log, sends, findings) {
            let track = index(evidence.partitions, delivery.group, delivery.partition);
            // `stored` has seen that the offset is not negative.
            deliveries.tracks[track].count(delivery.offset as usize, event.at_us);
        }
        order.see(&delivery, log, findings);
    }
    for group in 0..evidence.groups {
        for partition in 0..evidence.partitions {
            bounded(evidence, &deliveries, (group, partition), findings);
            if evidence.drained {
                complete(evidence, &deliveries, (group, partition), findings);
            }
        }
    }
    deliveries
}

fn named(delivery: &Delivery) -> String {
    format!(
        "group {} was given {} at offset {} of partition {}",
        delivery.group, delivery.fingerprint.identity, delivery.offset, delivery.partition
    )
}

/// Checks that what was delivered is what the log has there, or was sent if retention has removed
/// it since.
fn stored(
    delivery: &Delivery,
    log: Option<&PartitionLog>,
    sends: &Sends,
    findings: &mut Findings,
) -> bool {
    let Some(log) = log else { return true };
    if !(0..log.next_offset).contains(&delivery.offset) {
        findings.add(Rule::DeliveredIsStored, || {
            format!(
                "{}, and the log ends before {}",
                named(delivery),
                log.next_offset
            )
        });
        return false;
    }
    let same = match usize::try_from(delivery.offset - log.first_offset) {
        Ok(at) => log
            .entries
            .get(at)
            .is_some_and(|entry| entry.fingerprint.as_ref() == Ok(&delivery.fingerprint)),
        Err(_) => sends.has(&delivery.fingerprint),
    };
    if !same {
        findings.add(Rule::DeliveredIsStored, || {
            format!("{}, and that is not what was stored there", named(delivery))
        });
    }
    true
}

/// The last offset that each member was given from each partition, and the generation under which
/// it was.
#[derive(Default)]
struct Order {
    last: HashMap<(u32, u32, u32), (i64, i64)>,
}

impl Order {
    fn see(&mut self, delivery: &Delivery, log: Option<&PartitionLog>, findings: &mut Findings) {
        // The member did not know its generation, so the delivery may be the first one under
        // another, which may begin anywhere.
        if delivery.generation == 0 {
            return;
        }
        let key = (delivery.group, delivery.member, delivery.partition);
        let now = (delivery.generation, delivery.offset);
        let Some((generation, last)) = self.last.insert(key, now) else {
            return;
        };
        if generation != delivery.generation || delivery.offset == last + 1 {
            return;
        }
        // Records that retention has removed may be passed over; they are counted as lost.
        let passed = log.is_some_and(|log| last < log.first_offset && delivery.offset > last);
        if !passed {
            findings.add(Rule::DeliveryOrder, || {
                format!(
                    "{} right after offset {last}, by member {} in generation {generation}",
                    named(delivery),
                    delivery.member
                )
            });
        }
    }
}

/// Checks that redeliveries stay within what the group counted.
fn bounded(
    evidence: &Evidence<'_>,
    deliveries: &Deliveries,
    (group, partition): (u32, u32),
    findings: &mut Findings,
) {
    let cursor = evidence
        .cursors
        .iter()
        .find(|cursor| (cursor.group, cursor.partition) == (group, partition));
    // A killed server may forget commits, which are not synced, but not their count: a change of
    // owner counts from the commit that the server still knows, up to the claim, which is synced.
    let allowed = cursor.map_or(0, |cursor| cursor.redelivered);
    let again = deliveries
        .track(group, partition)
        .map_or(0, |track| track.again);
    if again > allowed {
        findings.add_many(Rule::RedeliveryBounded, again - allowed, || {
            format!(
                "group {group} was given {again} messages of partition {partition} again, and its \
                 counter allows {allowed}"
            )
        });
    }
}

/// Checks that all of the log was delivered, except what retention removed first and the group
/// counted as lost.
fn complete(
    evidence: &Evidence<'_>,
    deliveries: &Deliveries,
    (group, partition): (u32, u32),
    findings: &mut Findings,
) {
    let (Some(track), Some(log)) = (
        deliveries.track(group, partition),
        evidence
            .readings
            .first()
            .and_then(|reading| reading.partitions.get(partition as usize)),
    ) else {
        return;
    };
    let taken = (0..log.first_offset).filter(|offset| !track.by(*offset, None));
    let (taken, counted) = (taken.count() as u64, lost(evidence, group, partition));
    if taken > counted {
        findings.add_many(Rule::Delivered, taken - counted, || {
            format!(
                "retention took {taken} messages of partition {partition} that group {group} was \
                 never given, and the group counted {counted}"
            )
        });
    }
    for entry in &log.entries {
        if !track.by(entry.offset, None) {
            findings.add(Rule::Delivered, || {
                let what = match &entry.fingerprint {
                    Ok(fingerprint) => fingerprint.identity.to_string(),
                    Err(_) => "a damaged message".to_owned(),
                };
                format!(
                    "{what} at offset {} of partition {partition} was never given to group {group}",
                    entry.offset
                )
            });
        }
    }
}

fn lost(evidence: &Evidence<'_>, group: u32, partition: u32) -> u64 {
    evidence
        .cursors
        .iter()
        .filter(|cursor| (cursor.group, cursor.partition) == (group, partition))
        .map(|cursor| cursor.lost)
        .sum()
}

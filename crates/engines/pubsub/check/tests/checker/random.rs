//! Runs made at random: a right one passes, and one that was spoiled in any way does not.

use dyno_pubsub_check::checker::Rule;
use dyno_pubsub_check::history::What;
use dyno_sim::Random;
use proptest::prelude::*;

use super::good::{Case, identity};

/// What a message and its partition go through, drawn from a seed: always right.
fn make(seed: u64, partitions: u32, groups: u32, messages: usize) -> Case {
    let mut random = Random::new(seed);
    let mut case = Case::new(partitions, groups);
    let mut sequences = std::collections::HashMap::new();
    for _ in 0..messages {
        let producer = random.below(3) as u32;
        let partition = random.below(partitions as usize) as u32;
        let next = sequences.entry((producer, partition)).or_insert(0);
        let fingerprint = case.send(identity(producer, partition, *next));
        let identity = fingerprint.identity;
        *next += 1;
        match random.below(10) {
            0 => case.event(What::Failed(identity)),
            1 => case.event(What::Unknown(identity)),
            2 => _ = case.store(fingerprint),
            _ => {
                let offset = case.store(fingerprint);
                case.event(What::Acknowledged { identity, offset });
            }
        }
    }
    for group in 0..groups {
        for partition in 0..partitions {
            consume(&mut case, &mut random, (group, partition));
        }
    }
    case
}

/// A group reads a partition to its end, through members that come and go.
fn consume(case: &mut Case, random: &mut Random, (group, partition): (u32, u32)) {
    let end = case.readings[0].partitions[partition as usize].next_offset;
    let (mut committed, mut next, mut generation) = (0, 0, 1);
    while committed < end {
        let member = (group, 100 + generation as u32, generation);
        if next < end {
            case.deliver(member, (partition, next));
            next += 1;
        }
        match random.below(8) {
            0 => {
                case.cursor(group, partition).redelivered += (next - committed) as u64;
                next = committed;
                generation += 1;
            }
            1..=3 => {
                case.commit(member, (partition, next));
                committed = next;
            }
            _ => {}
        }
    }
}

/// Spoils a run in one of several ways; `None` if it has nothing to spoil in this way.
fn spoil(case: &mut Case, random: &mut Random, way: usize) -> Option<Rule> {
    let acknowledged: Vec<(usize, u32, i64)> = (0..case.events.len())
        .filter_map(|at| match case.events[at].what {
            What::Acknowledged { identity, offset } => Some((at, identity.partition, offset)),
            _ => None,
        })
        .collect();
    if acknowledged.is_empty() {
        return None;
    }
    let (at, partition, offset) = acknowledged[random.below(acknowledged.len())];
    let log = |case: &mut Case, change: &dyn Fn(&mut Vec<_>)| {
        for reading in &mut case.readings {
            change(&mut reading.partitions[partition as usize].entries);
        }
    };
    let place = offset as usize;
    match way {
        0 => log(case, &|entries| drop(entries.remove(place))),
        1 => {
            if let What::Acknowledged { offset, .. } = &mut case.events[at].what {
                *offset += 1;
            }
            return Some(Rule::StoredWhereSaid);
        }
        2 => {
            if let What::Acknowledged { identity, .. } = case.events[at].what {
                case.events[at].what = What::Failed(identity);
            }
            return Some(Rule::FailedIsAbsent);
        }
        3 => {
            let fingerprint = case.fingerprint_at(partition, offset);
            case.store(fingerprint);
            return Some(Rule::NothingTwice);
        }
        4 => {
            case.events.retain(|event| {
                !matches!(event.what, What::Delivered(d)
                    if d.group == 0 && (d.partition, d.offset) == (partition, offset))
            });
            return Some(Rule::Delivered);
        }
        5 => {
            case.deliver((0, 999, 0), (partition, offset));
            let total = case.cursor(0, partition).redelivered;
            let again = (0..=total).map(|_| case.events[case.events.len() - 1]);
            let again: Vec<_> = again.collect();
            case.events.extend(again);
            return Some(Rule::RedeliveryBounded);
        }
        6 => {
            case.readings[1].partitions[partition as usize].entries[place].offset += 1;
            return Some(Rule::ReadersAgree);
        }
        _ => {
            let next = case.readings[0].partitions[partition as usize].next_offset;
            case.cursor(0, partition).committed = next + 1;
            return Some(Rule::CursorBehindDelivery);
        }
    }
    Some(Rule::Contiguous)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_right_passes(
        seed in any::<u64>(), partitions in 1_u32..4, groups in 0_u32..3, messages in 0_usize..120,
    ) {
        let verdict = make(seed, partitions, groups, messages).verdict();
        prop_assert!(verdict.holds(), "{verdict:#?}");
    }

    #[test]
    fn what_was_spoiled_does_not(
        seed in any::<u64>(), partitions in 1_u32..4, messages in 1_usize..120, way in 0_usize..8,
    ) {
        let mut case = make(seed, partitions, 1, messages);
        let rule = spoil(&mut case, &mut Random::new(seed), way);
        if let Some(rule) = rule {
            let verdict = case.verdict();
            prop_assert!(verdict.broken.contains_key(&rule), "{rule:?}: {verdict:#?}");
        }
    }
}

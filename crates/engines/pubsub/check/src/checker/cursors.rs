//! The cursors of groups, against what the groups were given.

use std::collections::HashMap;

use super::deliveries::{Deliveries, Track};
use super::violation::{Findings, Rule};
use super::{Cursor, Evidence};
use crate::history::{Commit, What};

/// How far the accepted commits of one group in one partition have come.
#[derive(Debug, Default, Clone, Copy)]
struct Progress {
    /// The furthest offset that was accepted.
    next: i64,
    /// All offsets below this one were found to be delivered, so that no commit checks them again.
    checked: i64,
    /// The highest generation that was accepted, and when the answer to that commit came.
    generation: i64,
    answered_us: i64,
}

pub fn check(evidence: &Evidence<'_>, deliveries: &Deliveries, findings: &mut Findings) {
    let mut progress: HashMap<(u32, u32), Progress> = HashMap::new();
    for commit in accepted(evidence) {
        let place = (commit.commit.group, commit.commit.partition);
        let Some(track) = deliveries.track(place.0, place.1) else {
            continue;
        };
        let so_far = progress.entry(place).or_default();
        delivered_before(evidence, &commit.commit, track, so_far, findings);
        fenced(&commit, so_far, findings);
    }
    for cursor in evidence.cursors {
        let Some(track) = deliveries.track(cursor.group, cursor.partition) else {
            continue;
        };
        at_the_end(evidence, cursor, track, findings);
        let so_far = progress
            .get(&(cursor.group, cursor.partition))
            .copied()
            .unwrap_or_default();
        // Commits of cursors are not synced, so a server that was killed may have lost the last of
        // them. That causes redeliveries, which have a rule of their own, and no loss.
        if evidence.server_stayed && cursor.committed < so_far.next {
            findings.add(Rule::CursorKept, || {
                format!(
                    "group {} committed offset {} of partition {}, and its cursor is at {}",
                    cursor.group, so_far.next, cursor.partition, cursor.committed
                )
            });
        }
    }
}

struct Accepted {
    commit: Commit,
    answered_us: i64,
}

/// The accepted commits in the order in which they were asked for.
fn accepted(evidence: &Evidence<'_>) -> Vec<Accepted> {
    let mut all: Vec<Accepted> = evidence
        .events
        .iter()
        .filter_map(|event| match event.what {
            What::Commit(commit) if commit.accepted => Some(Accepted {
                commit,
                answered_us: event.at_us,
            }),
            _ => None,
        })
        .collect();
    // Events are in the order in which answers were recorded. Two members answer through pipes of
    // their own, so only the time of the request says which one was first.
    all.sort_by_key(|accepted| accepted.commit.asked_us);
    all
}

/// The first offset that must have been delivered. What retention removed before is judged by the
/// group's counters.
fn first_kept(evidence: &Evidence<'_>, partition: u32) -> i64 {
    evidence
        .readings
        .first()
        .and_then(|reading| reading.partitions.get(partition as usize))
        .map_or(0, |log| log.first_offset)
}

/// Checks that all offsets below a commit were delivered before the commit was asked for.
fn delivered_before(
    evidence: &Evidence<'_>,
    commit: &Commit,
    track: &Track,
    so_far: &mut Progress,
    findings: &mut Findings,
) {
    let from = so_far.checked.max(first_kept(evidence, commit.partition));
    match track.missing_below(from, commit.next, Some(commit.asked_us)) {
        None => so_far.checked = so_far.checked.max(commit.next),
        Some(offset) => findings.add(Rule::CursorBehindDelivery, || {
            format!(
                "member {} of group {} committed offset {} of partition {}, when offset {offset} had \
                 not been delivered",
                commit.member, commit.group, commit.next, commit.partition
            )
        }),
    }
    so_far.next = so_far.next.max(commit.next);
}

/// Checks that a commit was refused if it was asked for after a later generation had committed.
fn fenced(accepted: &Accepted, so_far: &mut Progress, findings: &mut Findings) {
    let commit = &accepted.commit;
    // A commit may be under way while a later generation commits. Only one that was asked for after
    // the later one was answered is known to have come second.
    if commit.generation < so_far.generation && commit.asked_us > so_far.answered_us {
        let later = so_far.generation;
        findings.add(Rule::GenerationFenced, || {
            format!(
                "member {} of group {} committed offset {} of partition {} in generation {}, after \
                 generation {later} had committed",
                commit.member, commit.group, commit.next, commit.partition, commit.generation
            )
        });
    }
    if commit.generation > so_far.generation {
        so_far.generation = commit.generation;
        so_far.answered_us = accepted.answered_us;
    }
}

fn at_the_end(evidence: &Evidence<'_>, cursor: &Cursor, track: &Track, findings: &mut Findings) {
    let from = first_kept(evidence, cursor.partition);
    if let Some(offset) = track.missing_below(from, cursor.committed, None) {
        findings.add(Rule::CursorBehindDelivery, || {
            format!(
                "the cursor of group {} in partition {} is at {}, and offset {offset} was never \
                 delivered to it",
                cursor.group, cursor.partition, cursor.committed
            )
        });
    }
}

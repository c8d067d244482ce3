//! The rules of the queue mode: each message is done once, and held by one worker at a time.

use std::collections::HashMap;

use super::sends::{self, Fate, Sends};
use super::violation::{Findings, Rule, Verdict};
use crate::history::{Event, QueueClaim, What};
use crate::message::{Fingerprint, Identity};

/// All that is known of a run in queue mode.
#[derive(Debug, Clone, Copy)]
pub struct QueueEvidence<'a> {
    /// What clients asked and were answered.
    pub events: &'a [Event],
    /// What the queue and its dead letters hold at the end.
    pub left: &'a [QueueLeft],
    /// How long a claimed message stays with its worker, microseconds.
    pub visibility_us: i64,
    /// Whether the server was never killed; if it was, it may have forgotten claims.
    pub server_stayed: bool,
    /// Whether workers were given the time to do everything.
    pub drained: bool,
}

/// A message that is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueLeft {
    /// The number that the queue gave it.
    pub id: i64,
    /// Whether it lies among the dead letters.
    pub dead: bool,
    /// Its identity and content, or why it is not a message that a check could have sent.
    pub fingerprint: Result<Fingerprint, String>,
}

/// Judges a run in queue mode.
pub fn check_queue(evidence: &QueueEvidence<'_>) -> Verdict {
    let mut findings = Findings::default();
    let sends = sends::gather(evidence.events, &mut findings);
    let claims = Claims::gather(evidence.events, &mut findings);
    for left in evidence.left {
        known(left.id, &left.fingerprint, &sends, &mut findings);
    }
    for (id, claimed) in &claims.of {
        for claim in claimed {
            known(*id, &Ok(claim.claim.fingerprint), &sends, &mut findings);
        }
        held_alone(evidence, *id, claimed, &claims, &mut findings);
    }
    one_number(evidence, &claims, &mut findings);
    kept(evidence, &sends, &claims, &mut findings);
    let mut verdict = findings.verdict();
    verdict.messages = sends.count();
    verdict.acknowledged = sends.acknowledged();
    verdict.failed = sends.failed();
    verdict.unknown = verdict.messages - verdict.acknowledged - verdict.failed;
    verdict.delivered = claims.of.values().map(|claims| claims.len() as u64).sum();
    verdict.redelivered = verdict.delivered - claims.of.len() as u64;
    verdict
}

struct Claim {
    claim: QueueClaim,
    answered_us: i64,
}

#[derive(Default)]
struct Claims {
    of: HashMap<i64, Vec<Claim>>,
    /// When the queue said that a message is done.
    done_us: HashMap<i64, i64>,
    /// How many workers were told that a message is no longer theirs to finish.
    refused: HashMap<i64, usize>,
}

impl Claims {
    fn done(&mut self, id: i64, at_us: i64, findings: &mut Findings) {
        if self.done_us.insert(id, at_us).is_some() {
            findings.add(Rule::DoneOnce, || {
                format!("queue message {id} was accepted as done twice")
            });
        }
    }

    fn gather(events: &[Event], findings: &mut Findings) -> Self {
        let mut claims = Self::default();
        for event in events {
            match event.what {
                What::Claimed(claim) => claims.of.entry(claim.id).or_default().push(Claim {
                    claim,
                    answered_us: event.at_us,
                }),
                What::Done {
                    id, accepted: true, ..
                } => claims.done(id, event.at_us, findings),
                What::Done { id, .. } => *claims.refused.entry(id).or_default() += 1,
                _ => {}
            }
        }
        for claimed in claims.of.values_mut() {
            claimed.sort_by_key(|claim| claim.claim.asked_us);
        }
        claims
    }

    /// Whether the message was done, or may be: a worker that has claimed it, and was not refused,
    /// may have left it done without receiving the answer.
    fn may_be_done(&self, id: i64) -> bool {
        let claimed = self.of.get(&id).map_or(0, Vec::len);
        let refused = self.refused.get(&id).copied().unwrap_or(0);
        claimed > refused || self.done_us.contains_key(&id)
    }
}

/// Checks that a message in the queue was sent, with this content, and that its producer was not
/// told that it failed.
fn known(
    id: i64,
    fingerprint: &Result<Fingerprint, String>,
    sends: &Sends,
    findings: &mut Findings,
) {
    let fingerprint = match fingerprint {
        Ok(fingerprint) => fingerprint,
        Err(reason) => {
            findings.add(Rule::Unchanged, || {
                format!("queue message {id} is damaged: {reason}")
            });
            return;
        }
    };
    let identity = fingerprint.identity;
    match sends.find(&identity) {
        None => findings.add(Rule::NothingInvented, || {
            format!("queue message {id} is {identity}, which was never sent")
        }),
        Some((checksum, _)) if checksum != fingerprint.checksum => {
            findings.add(Rule::Unchanged, || {
                format!("queue message {id} is {identity} with another content than was sent")
            });
        }
        Some((_, Fate::Failed)) => findings.add(Rule::FailedIsAbsent, || {
            format!("queue message {id} is {identity}, which its producer was told had failed")
        }),
        Some((_, Fate::Acknowledged(acknowledged))) if acknowledged != id => {
            findings.add(Rule::StoredWhereSaid, || {
                format!("{identity} was acknowledged as queue message {acknowledged}, and is {id}")
            });
        }
        Some(_) => {}
    }
}

/// Checks that no claim begins while another runs, and none after the message is done.
fn held_alone(
    evidence: &QueueEvidence<'_>,
    id: i64,
    claimed: &[Claim],
    claims: &Claims,
    findings: &mut Findings,
) {
    for pair in claimed.windows(2) {
        // The claim began at some time after it was asked for, and the next one before it was
        // answered. So only an overlap between these two times is certain.
        let free_us = pair[0].claim.asked_us + evidence.visibility_us;
        if evidence.server_stayed && pair[1].answered_us < free_us {
            let early_us = free_us - pair[1].answered_us;
            findings.add(Rule::HeldAlone, || {
                format!(
                    "queue message {id} was given to worker {} {early_us} us before worker {} had to \
                     give it back",
                    pair[1].claim.worker, pair[0].claim.worker
                )
            });
        }
    }
    let Some(done_us) = claims.done_us.get(&id) else {
        return;
    };
    for claim in claimed.iter().filter(|c| c.claim.asked_us > *done_us) {
        findings.add(Rule::HeldAlone, || {
            format!(
                "queue message {id} was given to worker {} after it was done",
                claim.claim.worker
            )
        });
    }
}

/// Checks that no message has two numbers.
fn one_number(evidence: &QueueEvidence<'_>, claims: &Claims, findings: &mut Findings) {
    let mut ids: HashMap<Identity, i64> = HashMap::new();
    let left = evidence
        .left
        .iter()
        .filter_map(|left| Some((left.id, left.fingerprint.as_ref().ok()?.identity)));
    let claimed = claims
        .of
        .iter()
        .flat_map(|(id, all)| all.iter().map(|c| (*id, c.claim.fingerprint.identity)));
    for (id, identity) in left.chain(claimed) {
        let first = *ids.entry(identity).or_insert(id);
        if first != id {
            findings.add(Rule::NothingTwice, || {
                format!("{identity} is in the queue as {first} and as {id}")
            });
        }
    }
}

/// Checks that every acknowledged message was done or is still there.
fn kept(evidence: &QueueEvidence<'_>, sends: &Sends, claims: &Claims, findings: &mut Findings) {
    let left: HashMap<i64, bool> = evidence
        .left
        .iter()
        .map(|left| (left.id, left.dead))
        .collect();
    for (identity, id) in sends.promises() {
        match left.get(&id) {
            None if !claims.may_be_done(id) => findings.add(Rule::QueueKept, || {
                format!("{identity} was acknowledged as queue message {id}, and is gone")
            }),
            Some(false) if evidence.drained => findings.add(Rule::QueueKept, || {
                format!("{identity}, queue message {id}, was never done")
            }),
            Some(_) if claims.done_us.contains_key(&id) => findings.add(Rule::DoneOnce, || {
                format!("{identity}, queue message {id}, is done, and still in the queue")
            }),
            _ => {}
        }
    }
}

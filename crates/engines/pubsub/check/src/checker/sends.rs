//! The outcome of each message, as its producer was told.

use std::collections::HashMap;

use super::violation::{Findings, Rule};
use crate::history::{Event, What};
use crate::message::{Fingerprint, Identity};

/// The outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The producer was told nothing, because it died or gave up. The message may be in the log,
    /// once.
    Unknown,
    /// The message is in the log, at this offset.
    Acknowledged(i64),
    /// The message is not in the log.
    Failed,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    checksum: u64,
    fate: Fate,
    settled: bool,
}

/// All messages of a run.
#[derive(Debug, Default)]
pub struct Sends {
    of: HashMap<Identity, Sent>,
}

impl Sends {
    /// What became of a message, and its checksum; `None` if it was never sent.
    pub fn find(&self, identity: &Identity) -> Option<(u64, Fate)> {
        self.of.get(identity).map(|sent| (sent.checksum, sent.fate))
    }

    /// Whether a message with this content was sent.
    pub fn has(&self, fingerprint: &Fingerprint) -> bool {
        self.find(&fingerprint.identity)
            .is_some_and(|(checksum, _)| checksum == fingerprint.checksum)
    }

    /// The acknowledged messages with their offsets, in no order.
    pub fn promises(&self) -> impl Iterator<Item = (Identity, i64)> + '_ {
        self.of
            .iter()
            .filter_map(|(identity, sent)| match sent.fate {
                Fate::Acknowledged(offset) => Some((*identity, offset)),
                Fate::Unknown | Fate::Failed => None,
            })
    }

    pub fn count(&self) -> u64 {
        self.of.len() as u64
    }

    pub fn acknowledged(&self) -> u64 {
        self.promises().count() as u64
    }

    pub fn failed(&self) -> u64 {
        self.of.values().filter(|s| s.fate == Fate::Failed).count() as u64
    }
}

/// Gathers the outcomes of all messages from a history.
pub fn gather(events: &[Event], findings: &mut Findings) -> Sends {
    let mut sends = Sends::default();
    for event in events {
        match event.what {
            What::Send { fingerprint, .. } => {
                let sent = Sent {
                    checksum: fingerprint.checksum,
                    fate: Fate::Unknown,
                    settled: false,
                };
                if sends.of.insert(fingerprint.identity, sent).is_some() {
                    findings.add(Rule::OneOutcome, || {
                        format!("{} was sent twice by its producer", fingerprint.identity)
                    });
                }
            }
            What::Acknowledged { identity, offset } => {
                settle(&mut sends, identity, Fate::Acknowledged(offset), findings);
            }
            What::Failed(identity) => settle(&mut sends, identity, Fate::Failed, findings),
            What::Unknown(identity) => settle(&mut sends, identity, Fate::Unknown, findings),
            What::Delivered(_) | What::Commit(_) | What::Claimed(_) | What::Done { .. } => {}
        }
    }
    sends
}

fn settle(sends: &mut Sends, identity: Identity, fate: Fate, findings: &mut Findings) {
    let Some(sent) = sends.of.get_mut(&identity) else {
        findings.add(Rule::OneOutcome, || {
            format!("{identity} was answered ({fate:?}), and was never sent")
        });
        return;
    };
    if sent.settled {
        let before = sent.fate;
        findings.add(Rule::OneOutcome, || {
            format!("{identity} was answered twice: {before:?}, then {fate:?}")
        });
        return;
    }
    // An explicit "unknown" settles a message, too: an outcome after it would contradict it.
    sent.settled = true;
    sent.fate = fate;
}

//! A broken rule with a sentence, and the sum of a judgement.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// How many sentences are kept for each rule; all are counted.
const SENTENCES_MAX: usize = 5;

/// A rule that a run may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A message has one outcome, after it was sent.
    OneOutcome,
    /// What was acknowledged is in the log.
    AcknowledgedIsStored,
    /// It is where the acknowledgement said.
    StoredWhereSaid,
    /// Nothing is twice in the log.
    NothingTwice,
    /// Everything in the log was sent.
    NothingInvented,
    /// What failed is not in the log.
    FailedIsAbsent,
    /// What is in the log is what was sent.
    Unchanged,
    /// A key's messages are in the key's partition.
    RightPartition,
    /// A producer's messages are in the order in which it sent them.
    ProducerOrder,
    /// Offsets have no gap, from the first to the next.
    Contiguous,
    /// All readers see the same log.
    ReadersAgree,
    /// All that is in the log is delivered to every group.
    Delivered,
    /// What is delivered is what is in the log.
    DeliveredIsStored,
    /// A member is given a partition's messages in order and without gaps.
    DeliveryOrder,
    /// Nothing is delivered again beyond what the group counted.
    RedeliveryBounded,
    /// No cursor passes what was not delivered.
    CursorBehindDelivery,
    /// A cursor does not go back.
    CursorKept,
    /// A member that lost a partition does not move its cursor.
    GenerationFenced,
    /// Each message of a queue is done, waits, or is a dead letter.
    QueueKept,
    /// A message of a queue is done once.
    DoneOnce,
    /// A message that is held, or done, is not given to another client.
    HeldAlone,
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The rule that was broken.
    pub rule: Rule,
    /// How it was broken, with the message, the partition and the offset.
    pub sentence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// The result of judging a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How many messages producers sent.
    pub messages: u64,
    /// How many of these were acknowledged.
    pub acknowledged: u64,
    /// How many of these were refused for good.
    pub failed: u64,
    /// How many of these have an unknown outcome.
    pub unknown: u64,
    /// How many deliveries there were to all groups.
    pub delivered: u64,
    /// How many of these were not the first of their message to their group.
    pub redelivered: u64,
    /// How often each rule was broken.
    pub broken: BTreeMap<Rule, u64>,
    /// Some of the breaches of each rule.
    pub violations: Vec<Violation>,
}

impl Verdict {
    /// Whether no rule was broken.
    pub fn holds(&self) -> bool {
        self.broken.is_empty()
    }
}

/// Collects breaches while a judgement goes on.
#[derive(Debug, Default)]
pub struct Findings {
    broken: BTreeMap<Rule, u64>,
    violations: Vec<Violation>,
}

impl Findings {
    /// Counts a breach and keeps its sentence if it is among the first of its rule.
    pub fn add(&mut self, rule: Rule, sentence: impl FnOnce() -> String) {
        self.add_many(rule, 1, sentence);
    }

    /// Counts `count` breaches that share a sentence.
    pub fn add_many(&mut self, rule: Rule, count: u64, sentence: impl FnOnce() -> String) {
        let kept = self.violations.iter().filter(|v| v.rule == rule).count();
        *self.broken.entry(rule).or_default() += count;
        // A run that fails may break a rule for each of its messages. The first sentences say what
        // went wrong, so only these are built.
        if kept < SENTENCES_MAX {
            let sentence = sentence();
            self.violations.push(Violation { rule, sentence });
        }
    }

    pub fn verdict(self) -> Verdict {
        Verdict {
            broken: self.broken,
            violations: self.violations,
            ..Verdict::default()
        }
    }
}

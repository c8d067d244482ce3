//! The result of a judge: which rules were broken, and how.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Sentences that are kept for each rule. Further breaches are only counted, because a broken
/// engine breaks a rule thousands of times.
const SENTENCES_MAX: usize = 8;

/// A rule that can be broken. Rules that Adya (1999) and Elle (Kingsbury and Alvaro 2020) name have
/// the names given there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A write of a failed transaction was read (G1a).
    AbortedRead,
    /// A value was read that its writer replaced before it committed (G1b).
    IntermediateRead,
    /// A value was read that no transaction wrote.
    UnwrittenValue,
    /// A value was read whose writer comes later in the order.
    FutureRead,
    /// A version was read that is older than the newest one at the reader's timestamp.
    StaleRead,
    /// One write of a transaction was seen, and another one was not.
    TornTransaction,
    /// Two transactions with writes have the same timestamp.
    #[serde(rename = "same-stamp")]
    SameTimestamp,
    /// A transaction ended before another began, and has the higher timestamp.
    Strictness,
    /// A transaction did not see what it had written or read itself.
    OwnWrites,
    /// A scan's rows are out of order, out of range or too many.
    ScanShape,
    /// An element is in a list twice, or was appended twice.
    Duplicate,
    /// Two readings of a list cannot come from one order of appends.
    IncompatibleOrder,
    /// Two transactions read one version and both replaced it.
    LostUpdate,
    /// A cycle of writes that replaced one another, without any read.
    G0,
    /// A cycle of writes and reads of them.
    G1c,
    /// A cycle with one read that a write made stale (read skew).
    GSingle,
    /// A cycle with several reads that writes made stale (write skew, long fork).
    G2,
    /// A cycle that exists only with the order of real time.
    RealTime,
    /// The accounts of a snapshot do not add up to the total.
    BankTotal,
    /// A transaction did not end, or left an intent behind.
    Liveness,
    /// A log did not read back what it had reported as durable.
    Durability,
    /// An oracle issued a timestamp that was not above all earlier ones.
    #[serde(rename = "stamp-order")]
    TimestampOrder,
}

/// One breach of a rule, as a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The rule that was broken.
    pub rule: Rule,
    /// What happened, with the transactions that took part and their operations.
    pub sentence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// The breaches that one or several judges found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How often each rule was broken. Rules that were not broken are missing.
    pub broken: BTreeMap<Rule, u64>,
    /// The first few breaches of each rule.
    pub violations: Vec<Violation>,
}

impl Verdict {
    /// Whether no rule was broken.
    pub fn holds(&self) -> bool {
        self.broken.is_empty()
    }

    /// Counts a breach, and keeps its sentence if it is among the first of its rule. The sentence
    /// is only made in that case, because it prints whole transactions.
    pub fn add(&mut self, rule: Rule, sentence: impl FnOnce() -> String) {
        let count = self.broken.entry(rule).or_default();
        *count += 1;
        if *count <= SENTENCES_MAX as u64 {
            let sentence = sentence();
            self.violations.push(Violation { rule, sentence });
        }
    }

    /// Adds the breaches that another judge found.
    pub fn merge(&mut self, other: Self) {
        for (rule, count) in other.broken {
            *self.broken.entry(rule).or_default() += count;
        }
        self.violations.extend(other.violations);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for violation in &self.violations {
            writeln!(f, "{:?}: {violation}", violation.rule)?;
        }
        Ok(())
    }
}

//! What a judge found.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Sentences kept for each rule; the rest is counted.
const SENTENCES_MAX: usize = 8;

/// A rule that can be broken. Names after Adya (1999) and Elle (Kingsbury and Alvaro 2020) where
/// they have one.
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
    /// An older version was read than the newest at the reader's stamp.
    StaleRead,
    /// One write of a transaction was seen, and another was not.
    TornTransaction,
    /// Two transactions that write have one stamp.
    SameStamp,
    /// A transaction ended before another began, and has the higher stamp.
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
    /// A cycle of writes.
    G0,
    /// A cycle of writes and reads of them.
    G1c,
    /// A cycle with one read that a write made old (read skew).
    GSingle,
    /// A cycle with several reads that writes made old (write skew, long fork).
    G2,
    /// A cycle that needs the order of real time.
    RealTime,
    /// Balances do not add up.
    BankTotal,
    /// A transaction did not end, or an intent was left behind.
    Liveness,
    /// A log did not read back what it had called durable.
    Durability,
    /// A stamp was given that was not above all before it.
    StampOrder,
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// How; names the transactions and what they did.
    pub sentence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// What judges found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
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

    /// Counts a breach and keeps its sentence if it is among the first of its rule.
    pub fn add(&mut self, rule: Rule, sentence: impl FnOnce() -> String) {
        let count = self.broken.entry(rule).or_default();
        *count += 1;
        if *count <= SENTENCES_MAX as u64 {
            let sentence = sentence();
            self.violations.push(Violation { rule, sentence });
        }
    }

    /// Adds what another judge found.
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

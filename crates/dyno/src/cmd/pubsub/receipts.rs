//! The outcomes of the lines that were sent.

use std::collections::{BTreeMap, VecDeque};

use dyno_pubsub::{Error, Position, Receipt, Result};

/// Lines whose outcome is not known yet, and counts of those whose outcome is.
#[derive(Default)]
pub struct Receipts {
    /// In the order of lines, from 1.
    waiting: VecDeque<(u64, Receipt)>,
    pub acknowledged: u64,
    pub refused: u64,
    /// Lines that an earlier run has sent.
    pub there: u64,
    /// The first line that was refused, and why.
    pub first_refused: Option<(u64, Error)>,
    /// Records and the last known offset, by partition.
    pub partitions: BTreeMap<i32, (u64, i64)>,
}

impl Receipts {
    pub fn push(&mut self, line: u64, receipt: Receipt) {
        self.waiting.push_back((line, receipt));
    }

    /// Counts known outcomes, up to the first line whose outcome is not known yet.
    pub fn settle_known(&mut self) {
        while let Some((line, outcome)) = self.front() {
            self.waiting.pop_front();
            self.count(line, outcome);
        }
    }

    fn front(&self) -> Option<(u64, Result<Position>)> {
        let (line, receipt) = self.waiting.front()?;
        Some((*line, receipt.outcome()?))
    }

    /// Waits until every outcome is known, and counts them.
    pub fn settle(&mut self) {
        for (line, receipt) in std::mem::take(&mut self.waiting) {
            self.count(line, receipt.wait());
        }
    }

    fn count(&mut self, line: u64, outcome: Result<Position>) {
        match outcome {
            Ok(position) => {
                self.acknowledged += 1;
                let (records, last) = self.partitions.entry(position.partition).or_insert((0, -1));
                *records += 1;
                *last = position.offset.max(*last);
            }
            Err(error) => self.refuse(line, error),
        }
    }

    /// Counts a line that the producer did not accept, or whose outcome is a failure.
    pub fn refuse(&mut self, line: u64, error: Error) {
        self.refused += 1;
        // Outcomes of several partitions come in any order, so the first refused line is the one
        // with the least number and not the one that is heard of first.
        let first = self.first_refused.as_ref().map(|(first, _)| *first);
        if first.is_none_or(|first| line < first) {
            self.first_refused = Some((line, error));
        }
    }
}

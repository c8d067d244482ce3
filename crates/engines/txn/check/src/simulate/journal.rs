//! A log as its promise has it: after a crash it holds all that was durable, perhaps some more, and never
//! anything behind a gap. `dyno-txn-log` proves by itself that it keeps this promise on a disk that tears and
//! loses writes.

use dyno_sim::Random;
use dyno_txn_core::Position;

/// One partition's log and checkpoint.
#[derive(Debug, Default)]
pub(super) struct Journal {
    checkpoint: Vec<Vec<u8>>,
    /// Those from `first` on.
    records: Vec<Vec<u8>>,
    /// The number of the first record that is kept, less one.
    before: Position,
    durable: Position,
    /// Up to where a sync is under way.
    syncing: Option<Position>,
}

impl Journal {
    pub fn append(&mut self, record: &[u8]) {
        self.records.push(record.to_vec());
    }

    /// The number of the last record.
    pub fn appended(&self) -> Position {
        self.before + self.records.len() as Position
    }

    pub fn durable(&self) -> Position {
        self.durable
    }

    /// Begins a sync if there is something to sync and none is under way.
    pub fn begin_sync(&mut self) -> bool {
        let due = self.syncing.is_none() && self.durable < self.appended();
        if due {
            self.syncing = Some(self.appended());
        }
        due
    }

    /// The sync is done: up to where the log is durable now.
    pub fn end_sync(&mut self) -> Position {
        self.durable = self.syncing.take().unwrap_or(self.durable);
        self.durable
    }

    /// A checkpoint takes the place of all records up to one.
    pub fn replace(&mut self, checkpoint: Vec<Vec<u8>>, upto: Position) {
        self.checkpoint = checkpoint;
        self.records.drain(..(upto - self.before) as usize);
        self.before = upto;
    }

    /// The machine stops: of what was not durable a beginning survives.
    pub fn crash(&mut self, random: &mut Random) {
        let unsure = (self.appended() - self.durable) as usize;
        let kept = (self.durable - self.before) as usize + random.below(unsure + 1);
        self.records.truncate(kept);
        self.durable = self.appended();
        self.syncing = None;
    }

    /// What recovery reads: the checkpoint, then the records.
    pub fn read(&self) -> impl Iterator<Item = &[u8]> {
        self.checkpoint
            .iter()
            .chain(&self.records)
            .map(Vec::as_slice)
    }
}

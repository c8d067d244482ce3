//! One read or write of one row, under the rules of the order:
//!
//! - A read at `s` sees the newest version at or before `s`, and is recorded. An undecided write of an
//!   older transaction is in its way; one of a younger transaction is not seen.
//! - A write at `s` is refused where a read or a version above `s` is. Somebody else's undecided write is
//!   in its way, whichever is older.

use std::sync::Arc;

use dyno_txn_api::limits::{check_key, check_value};
use dyno_txn_api::{Change, Code, Error, Key, Result, Row as Columns, Stamp, TableDef, index_id};

use super::participant::Participant;
use super::{Partition, Position};
use crate::message::Head;
use crate::planted::Bug;
use crate::store::{Slot, Stored};

/// Why an operation did not happen.
#[derive(Debug)]
pub(super) enum Stop {
    /// The intent at this place is in the way.
    Blocked(Slot),
    /// It cannot be done.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

/// One row that a write changes: the row itself, or an entry of an index.
struct Step {
    slot: Slot,
    value: Stored,
}

impl Partition {
    /// A row's value, and up to where the log must be durable before somebody is told.
    pub(super) fn get(&mut self, head: &Head, key: &Key) -> Result<(Stored, Position), Stop> {
        let hash = self.store.hash(key.table, &key.bytes);
        let Some(slot) = self.store.find(hash, key.table, &key.bytes) else {
            self.reads.absent(hash, head.stamp);
            return Ok((None, 0));
        };
        self.get_at(head.stamp, slot)
    }

    pub(super) fn get_at(&mut self, stamp: Stamp, slot: Slot) -> Result<(Stored, Position), Stop> {
        if let Some(intent) = &self.store.row(slot).intent {
            if intent.owner.stamp == stamp {
                return Ok((intent.value.clone(), 0));
            }
            if intent.owner.stamp < stamp {
                return Err(Stop::Blocked(slot));
            }
        }
        if !self.config.planted.has(Bug::ReadCache) {
            self.store.note_read(slot, stamp);
        }
        let (written, value) = self.store.row(slot).at(stamp);
        Ok((value.clone(), self.held.position_of(written)))
    }

    /// Writes a row and its index entries as intents of the transaction: all of them, or none. Up to
    /// where the log must be durable before somebody is told how it went.
    pub(super) fn write(
        &mut self,
        txn: &mut Participant,
        key: &Key,
        change: &Change,
    ) -> Result<Position, Stop> {
        self.created.clear();
        let written = self.try_write(txn, key, change);
        if written.is_err() {
            for slot in std::mem::take(&mut self.created) {
                self.store.abandon(slot);
            }
        }
        written
    }

    fn try_write(
        &mut self,
        txn: &mut Participant,
        key: &Key,
        change: &Change,
    ) -> Result<Position, Stop> {
        check_key(&key.bytes)?;
        let def = self.schema.table(key.table)?.clone();
        if self.store.bytes() > self.config.memory_bytes && *change != Change::Delete {
            let text = format!("the partition holds its {} bytes", self.config.memory_bytes);
            return Err(Error::new(Code::MemoryFull, text).into());
        }
        let slot = self.place(&txn.head, key)?;
        let row = self.store.row(slot);
        let (old, seen) = match &row.intent {
            Some(intent) => (&intent.value, 0),
            None => (&row.value, self.held.position_of(row.stamp)),
        };
        let value = changed(&def, key, change, old.as_deref())?;
        if def.indexes.is_empty() {
            self.intend(txn, Step { slot, value });
            return Ok(seen);
        }
        let old = old.clone();
        let mut steps = self.index_steps(txn, &def, key, old.as_deref(), value.as_deref())?;
        steps.push(Step { slot, value });
        for step in steps {
            self.intend(txn, step);
        }
        Ok(seen)
    }

    /// The row's place, made when it is not there, once nothing is in the way of a write.
    fn place(&mut self, head: &Head, key: &Key) -> Result<Slot, Stop> {
        let hash = self.store.hash(key.table, &key.bytes);
        let slot = match self.store.find(hash, key.table, &key.bytes) {
            Some(slot) => slot,
            None => {
                let read = self.reads.newest(hash, key.table, &key.bytes, head.stamp);
                if read > head.stamp {
                    return Err(self.conflict(key, read).into());
                }
                let slot = self.store.add(hash, key.table, &key.bytes, read);
                self.created.push(slot);
                return Ok(slot);
            }
        };
        let row = self.store.row(slot);
        if let Some(intent) = &row.intent {
            return match intent.owner.stamp == head.stamp {
                true => Ok(slot),
                false => Err(Stop::Blocked(slot)),
            };
        }
        let above = row.read.max(row.stamp);
        if above > head.stamp || row.stamp == head.stamp {
            return Err(self.conflict(key, above).into());
        }
        Ok(slot)
    }

    fn conflict(&mut self, key: &Key, above: Stamp) -> Error {
        self.counters.conflicts += 1;
        let text = format!("key {key:?}: a younger transaction ({above}) was there before");
        Error::new(Code::Conflict, text)
    }

    /// Entries that go and come with a row, where nothing is in the way of any of them.
    fn index_steps(
        &mut self,
        txn: &Participant,
        def: &Arc<TableDef>,
        key: &Key,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Vec<Step>, Stop> {
        let mut steps = Vec::new();
        for index in 0..def.indexes.len() as u16 {
            let entry = |value: &[u8]| def.index_key(index, &key.bytes, value);
            let (old, new) = (old.map(entry).transpose()?, new.map(entry).transpose()?);
            if old == new {
                continue;
            }
            let table = index_id(key.table, index);
            for (bytes, value) in [(old, None), (new, Some(Box::from([])))] {
                if let Some(bytes) = bytes {
                    let slot = self.place(&txn.head, &Key { table, bytes })?;
                    steps.push(Step { slot, value });
                }
            }
        }
        Ok(steps)
    }

    fn intend(&mut self, txn: &mut Participant, step: Step) {
        let first = self.store.row(step.slot).intent.is_none();
        self.store.intend(step.slot, txn.head, step.value);
        if first {
            txn.slots.push(step.slot);
        }
    }
}

/// The value after a change.
fn changed(def: &TableDef, key: &Key, change: &Change, old: Option<&[u8]>) -> Result<Stored> {
    let there = || format!("key {key:?} of table `{}`", def.name);
    let new: Box<[u8]> = match change {
        Change::Put(value) => value.as_slice().into(),
        Change::Insert(value) if old.is_none() => value.as_slice().into(),
        Change::Insert(_) => {
            let text = format!("{}: there is a row", there());
            return Err(Error::new(Code::AlreadyExists, text));
        }
        Change::Delete => return Ok(None),
        Change::Update(columns) => {
            let Some(old) = old else {
                let text = format!("{}: there is no row", there());
                return Err(Error::new(Code::NotFound, text));
            };
            Columns::parse(old)?.update(columns)?.into()
        }
    };
    check_value(&new)?;
    def.check_row(&new)?;
    Ok(Some(new))
}

//! One read or write of one row, under the rules of the order:
//!
//! - A read at `s` sees the newest version at or before `s`, and is recorded. An undecided write of an
//!   older transaction is in its way; one of a younger transaction is not seen.
//! - A write at `s` is refused where a read or a version above `s` is. Somebody else's undecided write is
//!   in its way, whichever is older.

use dyno_txn_api::limits::{check_key, check_value};
use dyno_txn_api::{
    Assignment, Change, Code, Error, Key, Result, Row as Columns, Stamp, TableDef, TableId,
    index_id,
};

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

/// A [`Key`] whose bytes lie elsewhere: in an operation, or in a message that is not decoded.
#[derive(Clone, Copy)]
pub(super) struct KeyRef<'a> {
    pub table: TableId,
    pub bytes: &'a [u8],
}

impl KeyRef<'_> {
    /// One of its own.
    pub fn to_key(self) -> Key {
        Key::new(self.table, self.bytes)
    }

    /// For messages.
    fn text(&self) -> String {
        format!("{:?}", Key::new(self.table, self.bytes))
    }
}

impl<'a> From<&'a Key> for KeyRef<'a> {
    fn from(key: &'a Key) -> Self {
        let (table, bytes) = (key.table, &*key.bytes);
        Self { table, bytes }
    }
}

/// A [`Change`] whose bytes lie elsewhere.
#[derive(Clone, Copy)]
pub(super) enum ChangeRef<'a> {
    Put(&'a [u8]),
    Insert(&'a [u8]),
    Delete,
    Update(&'a [Assignment]),
}

impl<'a> From<&'a Change> for ChangeRef<'a> {
    fn from(change: &'a Change) -> Self {
        match change {
            Change::Put(value) => ChangeRef::Put(value),
            Change::Insert(value) => ChangeRef::Insert(value),
            Change::Delete => ChangeRef::Delete,
            Change::Update(columns) => ChangeRef::Update(columns),
        }
    }
}

/// An entry of an index that comes or goes.
struct EntryStep {
    slot: Slot,
    there: bool,
}

impl Partition {
    /// A row's value, and up to where the log must be durable before somebody is told.
    pub(super) fn get(&mut self, head: &Head, key: KeyRef<'_>) -> Result<(Stored, Position), Stop> {
        let hash = self.store.hash(key.table, key.bytes);
        let Some(slot) = self.store.find(hash, key.table, key.bytes) else {
            self.reads.absent(hash, head.stamp);
            return Ok((Stored::NONE, 0));
        };
        self.get_at(head.stamp, slot)
    }

    pub(super) fn get_at(&mut self, stamp: Stamp, slot: Slot) -> Result<(Stored, Position), Stop> {
        if let Some(intent) = self.store.intent(slot) {
            if intent.owner.stamp == stamp {
                return Ok((intent.value, 0));
            }
            if intent.owner.stamp < stamp {
                return Err(Stop::Blocked(slot));
            }
        }
        if !self.config.planted.has(Bug::ReadCache) {
            self.store.note_read(slot, stamp);
        }
        let (written, value) = self.store.version(slot, stamp);
        Ok((value, self.held.position_of(written)))
    }

    /// Writes a row and its index entries as intents of the transaction: all of them, or none. Up to
    /// where the log must be durable before somebody is told how it went.
    pub(super) fn write(
        &mut self,
        txn: &mut Participant,
        key: KeyRef<'_>,
        change: ChangeRef<'_>,
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
        key: KeyRef<'_>,
        change: ChangeRef<'_>,
    ) -> Result<Position, Stop> {
        check_key(key.bytes)?;
        self.schema.table(key.table)?;
        let deletes = matches!(change, ChangeRef::Delete);
        if self.store.bytes() > self.config.memory_bytes && !deletes {
            let text = format!("the partition holds its {} bytes", self.config.memory_bytes);
            return Err(Error::new(Code::MemoryFull, text).into());
        }
        let slot = self.place(&txn.head, key)?;
        let row = self.store.row(slot);
        let (old, seen) = match self.store.intent(slot) {
            Some(intent) => (intent.value, 0),
            None => (row.value, self.held.position_of(row.stamp)),
        };
        let def = self.schema.table(key.table)?;
        let old = self.store.value(old);
        let mut scratch = std::mem::take(&mut self.scratch);
        let value = changed(def, key, change, old, &mut scratch)?;
        let stays = match change {
            ChangeRef::Update(columns) => !def.moves_in_index(columns),
            _ => def.indexes.is_empty(),
        };
        if !stays {
            let (def, old) = (def.clone(), old.map(<[u8]>::to_vec));
            let steps = self.index_steps(txn, &def, key, old.as_deref(), value)?;
            for step in steps {
                self.intend(txn, step.slot, step.there.then_some(&[]));
            }
        }
        self.intend(txn, slot, value);
        self.scratch = scratch;
        Ok(seen)
    }

    /// The row's place, made when it is not there, once nothing is in the way of a write.
    fn place(&mut self, head: &Head, key: KeyRef<'_>) -> Result<Slot, Stop> {
        let hash = self.store.hash(key.table, key.bytes);
        let slot = match self.store.find(hash, key.table, key.bytes) {
            Some(slot) => slot,
            None => {
                let read = self.reads.newest(hash, key.table, key.bytes, head.stamp);
                if read > head.stamp {
                    return Err(self.conflict(key, read).into());
                }
                let slot = self.store.add(hash, key.table, key.bytes, read);
                self.created.push(slot);
                return Ok(slot);
            }
        };
        let row = self.store.row(slot);
        if let Some(intent) = self.store.intent(slot) {
            return match intent.owner.stamp == head.stamp {
                true => Ok(slot),
                false => Err(Stop::Blocked(slot)),
            };
        }
        let mut above = row.read.max(row.stamp);
        if row.value.is_none() && !self.config.planted.has(Bug::DeletedRows) {
            // Scans pass over deleted rows without a trace in them: as of a row that is not there, only the ranges
            // that were read tell who saw that there is nothing.
            let (hash, table) = (row.hash, key.table);
            above = above.max(self.reads.newest(hash, table, key.bytes, head.stamp));
        }
        if above > head.stamp || row.stamp == head.stamp {
            return Err(self.conflict(key, above).into());
        }
        Ok(slot)
    }

    fn conflict(&mut self, key: KeyRef<'_>, above: Stamp) -> Error {
        self.counters.conflicts += 1;
        let text = format!(
            "key {}: a younger transaction ({above}) was there before",
            key.text()
        );
        Error::new(Code::Conflict, text)
    }

    /// Entries that go and come with a row, where nothing is in the way of any of them.
    fn index_steps(
        &mut self,
        txn: &Participant,
        def: &TableDef,
        key: KeyRef<'_>,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Vec<EntryStep>, Stop> {
        let mut steps = Vec::new();
        for index in 0..def.indexes.len() as u16 {
            let entry = |value: &[u8]| def.index_key(index, key.bytes, value);
            let (old, new) = (old.map(entry).transpose()?, new.map(entry).transpose()?);
            if old == new {
                continue;
            }
            let table = index_id(key.table, index);
            for (bytes, there) in [(old, false), (new, true)] {
                if let Some(bytes) = bytes {
                    let bytes = &*bytes;
                    let slot = self.place(&txn.head, KeyRef { table, bytes })?;
                    steps.push(EntryStep { slot, there });
                }
            }
        }
        Ok(steps)
    }

    fn intend(&mut self, txn: &mut Participant, slot: Slot, value: Option<&[u8]>) {
        if !self.store.row(slot).has_intent() {
            txn.slots.push(slot);
        }
        self.store.intend(slot, txn.head, value);
    }
}

/// The value after a change; that of an update is made in `scratch`.
fn changed<'a>(
    def: &TableDef,
    key: KeyRef<'_>,
    change: ChangeRef<'a>,
    old: Option<&[u8]>,
    scratch: &'a mut Vec<u8>,
) -> Result<Option<&'a [u8]>> {
    let there = || format!("key {} of table `{}`", key.text(), def.name);
    let new = match change {
        ChangeRef::Put(value) => value,
        ChangeRef::Insert(value) if old.is_none() => value,
        ChangeRef::Insert(_) => {
            let text = format!("{}: there is a row", there());
            return Err(Error::new(Code::AlreadyExists, text));
        }
        ChangeRef::Delete => return Ok(None),
        ChangeRef::Update(columns) => {
            let Some(old) = old else {
                let text = format!("{}: there is no row", there());
                return Err(Error::new(Code::NotFound, text));
            };
            Columns::parse(old)?.update_into(columns, scratch)?;
            check_value(scratch)?;
            def.check_update(columns, &Columns::parse(scratch)?)?;
            return Ok(Some(scratch));
        }
    };
    check_value(new)?;
    def.check_row(new)?;
    Ok(Some(new))
}

//! Reads or writes one row, under the rules of timestamp ordering:
//!
//! - A read at `s` sees the newest version at or before `s`, and is recorded. The intent of an
//!   older transaction blocks it; it does not see that of a younger one.
//! - A write at `s` is refused if the row has a read or a version above `s`. The intent of any
//!   other transaction blocks it.

use dyno_txn_api::limits::{check_key, check_value};
use dyno_txn_api::{
    Assignment, Change, Code, Error, Key, Result, Row as Columns, TableDef, TableId, Timestamp,
    index_id,
};

use super::participant::Participant;
use super::{Partition, Position};
use crate::message::Head;
use crate::planted::Bug;
use crate::store::{Slot, Stored};

/// Why an operation was not done.
#[derive(Debug)]
pub(super) enum Stop {
    /// The intent of another transaction at this row is in the way.
    Blocked(Slot),
    /// The operation was refused, and the transaction cannot commit.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

/// A [`Key`] that borrows its bytes from an operation or from an encoded message.
#[derive(Clone, Copy)]
pub(super) struct KeyRef<'a> {
    pub table: TableId,
    pub bytes: &'a [u8],
}

impl KeyRef<'_> {
    /// A copy that owns its bytes.
    pub fn to_key(self) -> Key {
        Key::new(self.table, self.bytes)
    }

    /// The key as error messages show it.
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

/// A [`Change`] that borrows its bytes.
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

/// An index entry to add, or to remove.
struct EntryStep {
    slot: Slot,
    added: bool,
}

impl Partition {
    /// Reads a row. Returns the value, and the record up to which the log must be durable before a
    /// client is told.
    pub(super) fn get(&mut self, head: &Head, key: KeyRef<'_>) -> Result<(Stored, Position), Stop> {
        let hash = self.store.hash(key.table, key.bytes);
        let Some(slot) = self.store.find(hash, key.table, key.bytes) else {
            self.reads.absent(hash, head.timestamp);
            return Ok((Stored::NONE, 0));
        };
        self.get_at(head.timestamp, slot)
    }

    pub(super) fn get_at(
        &mut self,
        timestamp: Timestamp,
        slot: Slot,
    ) -> Result<(Stored, Position), Stop> {
        if let Some(intent) = self.store.intent(slot) {
            if intent.owner.timestamp == timestamp {
                return Ok((intent.value, 0));
            }
            if intent.owner.timestamp < timestamp {
                return Err(Stop::Blocked(slot));
            }
        }
        // From here on no older transaction may write this row, because it would change what was
        // read.
        if !self.config.planted.has(Bug::ReadCache) {
            self.store.note_read(slot, timestamp);
        }
        let (written, value) = self.store.version(slot, timestamp);
        Ok((value, self.pending.position_of(written)))
    }

    /// Writes a row and its index entries as intents of the transaction: all of them, or none.
    /// Returns the record up to which the log must be durable before a client is told of the
    /// result.
    pub(super) fn write(
        &mut self,
        txn: &mut Participant,
        key: KeyRef<'_>,
        change: ChangeRef<'_>,
    ) -> Result<Position, Stop> {
        self.created.clear();
        let written = self.try_write(txn, key, change);
        if written.is_err() {
            // Rows that were made for this write have no version and no intent. They would stay for
            // ever.
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
        // A full partition still accepts deletes, which are the way to make room.
        let deletes = matches!(change, ChangeRef::Delete);
        if self.store.bytes() > self.config.memory_bytes && !deletes {
            let text = format!(
                "the partition has reached its limit of {} bytes",
                self.config.memory_bytes
            );
            return Err(Error::new(Code::MemoryFull, text).into());
        }
        let slot = self.writable_slot(&txn.head, key)?;
        let row = self.store.row(slot);
        let (old, seen) = match self.store.intent(slot) {
            Some(intent) => (intent.value, 0),
            None => (row.value, self.pending.position_of(row.timestamp)),
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
            // All entries are checked before the first intent is made, so that a write that fails
            // leaves none.
            let steps = self.index_steps(txn, &def, key, old.as_deref(), value)?;
            for step in steps {
                self.intend(txn, step.slot, step.added.then_some(&[]));
            }
        }
        self.intend(txn, slot, value);
        self.scratch = scratch;
        Ok(seen)
    }

    /// The slot of a row that the transaction may write now. Makes the row if it does not exist.
    fn writable_slot(&mut self, head: &Head, key: KeyRef<'_>) -> Result<Slot, Stop> {
        let hash = self.store.hash(key.table, key.bytes);
        let slot = match self.store.find(hash, key.table, key.bytes) {
            Some(slot) => slot,
            None => {
                let read = self
                    .reads
                    .newest(hash, key.table, key.bytes, head.timestamp);
                if read > head.timestamp {
                    return Err(self.conflict(key, read).into());
                }
                let slot = self.store.add(hash, key.table, key.bytes, read);
                self.created.push(slot);
                return Ok(slot);
            }
        };
        let row = self.store.row(slot);
        if let Some(intent) = self.store.intent(slot) {
            return if intent.owner.timestamp == head.timestamp {
                Ok(slot)
            } else {
                Err(Stop::Blocked(slot))
            };
        }
        let mut above = row.read.max(row.timestamp);
        if row.value.is_none() && !self.config.planted.has(Bug::DeletedRows) {
            // Scans pass over deleted rows without noting it in the row. As with an absent row,
            // only the ranges in the read cache tell which transactions have seen that it does not
            // exist.
            let (hash, table) = (row.hash, key.table);
            above = above.max(self.reads.newest(hash, table, key.bytes, head.timestamp));
        }
        if above > head.timestamp || row.timestamp == head.timestamp {
            return Err(self.conflict(key, above).into());
        }
        Ok(slot)
    }

    fn conflict(&mut self, key: KeyRef<'_>, above: Timestamp) -> Error {
        self.counters.conflicts += 1;
        let text = format!(
            "key {}: a younger transaction ({above}) has read or written it",
            key.text()
        );
        Error::new(Code::Conflict, text)
    }

    /// The index entries to remove and to add for a new value of a row, each of which the
    /// transaction may write now.
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
            for (bytes, added) in [(old, false), (new, true)] {
                if let Some(bytes) = bytes {
                    let bytes = &*bytes;
                    let slot = self.writable_slot(&txn.head, KeyRef { table, bytes })?;
                    steps.push(EntryStep { slot, added });
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

/// The value after a change, checked against the table. The value of an update is built in
/// `scratch`.
fn changed<'a>(
    def: &TableDef,
    key: KeyRef<'_>,
    change: ChangeRef<'a>,
    old: Option<&[u8]>,
    scratch: &'a mut Vec<u8>,
) -> Result<Option<&'a [u8]>> {
    let which = || format!("key {} of table `{}`", key.text(), def.name);
    let new = match change {
        ChangeRef::Put(value) => value,
        ChangeRef::Insert(value) if old.is_none() => value,
        ChangeRef::Insert(_) => {
            let text = format!("{}: the row exists already", which());
            return Err(Error::new(Code::AlreadyExists, text));
        }
        ChangeRef::Delete => return Ok(None),
        ChangeRef::Update(columns) => {
            let Some(old) = old else {
                let text = format!("{}: the row does not exist", which());
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

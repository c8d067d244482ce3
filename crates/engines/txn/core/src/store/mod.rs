//! The rows of one partition: point index, order, versions, and what may be forgotten.
//!
//! A row's place (`Slot`) stays while the row lives. Tables that are hashed by their whole key get their
//! order at the first scan, since most are never scanned and keeping one costs more than the rest of a
//! write; all others are kept in order from the start.

mod index;
mod order;
mod row;

use std::collections::VecDeque;

use dyno_txn_api::{Stamp, TableId};

use crate::message::Head;
use index::PointIndex;
pub(crate) use order::Order;
pub(crate) use row::{Intent, Row, Stored, Version};
use row::{ROW_BYTES, VERSION_BYTES, bytes_of};

/// A row's place.
pub(crate) type Slot = u32;

#[derive(Debug)]
pub(crate) struct Store {
    seed: u64,
    index: PointIndex,
    rows: Vec<Row>,
    free: Vec<Slot>,
    order: Order,
    bytes: u64,
    /// Rows with something to forget, and the stamp before which nobody may need it any more.
    forget: VecDeque<(Stamp, Slot)>,
}

impl Store {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            index: PointIndex::new(),
            rows: Vec::new(),
            free: Vec::new(),
            order: Order::default(),
            bytes: 0,
            forget: VecDeque::new(),
        }
    }

    pub fn hash(&self, table: TableId, key: &[u8]) -> u32 {
        index::hash(self.seed, table.0, key)
    }

    pub fn find(&self, hash: u32, table: TableId, key: &[u8]) -> Option<Slot> {
        self.index.find(hash, |slot| {
            let row = &self.rows[slot as usize];
            row.table == table && *row.key == *key
        })
    }

    /// A new row without versions, whose key was read last at this stamp. It must not be there yet.
    pub fn add(&mut self, hash: u32, table: TableId, key: &[u8], read: Stamp) -> Slot {
        let row = Row {
            table,
            hash,
            key: key.into(),
            stamp: 0,
            value: None,
            older: Vec::new(),
            read,
            intent: None,
        };
        self.bytes += ROW_BYTES + key.len() as u64;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.rows[slot as usize] = row;
                slot
            }
            None => {
                self.rows.push(row);
                (self.rows.len() - 1) as Slot
            }
        };
        self.index.insert(hash, slot);
        self.order.insert(table, key, slot);
        slot
    }

    pub fn row(&self, slot: Slot) -> &Row {
        &self.rows[slot as usize]
    }

    pub fn note_read(&mut self, slot: Slot, stamp: Stamp) {
        let row = &mut self.rows[slot as usize];
        row.read = row.read.max(stamp);
    }

    /// Sets or changes the intent of the row; a foreign one must not be there.
    pub fn intend(&mut self, slot: Slot, owner: Head, value: Stored) {
        let row = &mut self.rows[slot as usize];
        self.bytes += bytes_of(&value);
        match &mut row.intent {
            Some(intent) => {
                self.bytes -= bytes_of(&intent.value);
                intent.value = value;
            }
            None => {
                self.bytes += VERSION_BYTES;
                let waiters = Vec::new();
                row.intent = Some(Box::new(Intent {
                    owner,
                    value,
                    waiters,
                }));
            }
        }
    }

    pub fn wait_on(&mut self, slot: Slot, waiter: u64) {
        if let Some(intent) = &mut self.rows[slot as usize].intent {
            intent.waiters.push(waiter);
        }
    }

    /// Takes the intent away, and returns who waits for it.
    pub fn drop_intent(&mut self, slot: Slot) -> Vec<u64> {
        let row = &mut self.rows[slot as usize];
        let Some(intent) = row.intent.take() else {
            return Vec::new();
        };
        self.bytes -= VERSION_BYTES + bytes_of(&intent.value);
        if row.value.is_none() {
            // Nothing but the intent kept the row.
            let when = row.read.max(row.stamp);
            self.forget.push_back((when, slot));
        }
        intent.waiters
    }

    /// Nothing came of a row that was added: it goes when nobody needs to know that it was read.
    pub fn abandon(&mut self, slot: Slot) {
        let row = &self.rows[slot as usize];
        if row.stamp == 0 && row.intent.is_none() {
            self.forget.push_back((row.read.max(1), slot));
        }
    }

    /// Makes the intent a version, and returns who waits for it.
    pub fn keep_intent(&mut self, slot: Slot) -> Vec<u64> {
        let row = &mut self.rows[slot as usize];
        let Some(intent) = row.intent.take() else {
            return Vec::new();
        };
        self.bytes -= VERSION_BYTES + bytes_of(&intent.value);
        self.install(slot, intent.owner.stamp, intent.value);
        intent.waiters
    }

    /// Adds a version that is newer than all others; an older one, as when a log is read again over a
    /// checkpoint that has later rows, is passed over.
    pub fn install(&mut self, slot: Slot, stamp: Stamp, value: Stored) {
        let row = &mut self.rows[slot as usize];
        if stamp <= row.stamp {
            return;
        }
        self.bytes += bytes_of(&value);
        let deleted = value.is_none();
        let replaced = std::mem::replace(&mut row.value, value);
        let before = std::mem::replace(&mut row.stamp, stamp);
        if before != 0 {
            self.bytes += VERSION_BYTES;
            let (stamp, value) = (before, replaced);
            row.older.push(Version { stamp, value });
        }
        if before != 0 || deleted {
            self.forget.push_back((stamp, slot));
        }
    }

    /// Forgets versions that no transaction at or above the horizon can read, and rows that are deleted
    /// since before it; at most `most` rows are looked at.
    pub fn forget_before(&mut self, horizon: Stamp, most: usize) {
        for _ in 0..most {
            match self.forget.front() {
                Some(&(stamp, _)) if stamp <= horizon => {}
                _ => return,
            }
            if let Some((_, slot)) = self.forget.pop_front() {
                self.forget_row(slot, horizon);
            }
        }
    }

    fn forget_row(&mut self, slot: Slot, horizon: Stamp) {
        let row = &mut self.rows[slot as usize];
        if row.table == FREE {
            return;
        }
        // The newest version at or below the horizon is still read; those before it are not.
        let needed = match row.stamp <= horizon {
            true => row.older.len(),
            false => row
                .older
                .partition_point(|v| v.stamp <= horizon)
                .saturating_sub(1),
        };
        for version in row.older.drain(..needed) {
            self.bytes -= VERSION_BYTES + bytes_of(&version.value);
        }
        if row.older.is_empty() {
            row.older = Vec::new();
        }
        let gone = row.value.is_none() && row.older.is_empty() && row.intent.is_none();
        if !gone || row.stamp > horizon {
            return;
        }
        if row.read > horizon {
            // Somebody saw that there is nothing: that must outlive the row's last version.
            let read = row.read;
            self.forget.push_back((read, slot));
            return;
        }
        self.remove(slot);
    }

    fn remove(&mut self, slot: Slot) {
        let row = &mut self.rows[slot as usize];
        let (table, hash, key) = (row.table, row.hash, std::mem::take(&mut row.key));
        row.table = FREE;
        self.bytes -= ROW_BYTES + key.len() as u64;
        self.index.remove(hash, slot);
        self.order.remove(table, &key);
        self.free.push(slot);
    }

    /// The order of a table, made when it is not there yet.
    pub fn order(&mut self, table: TableId) -> &Order {
        if !self.order.has(table) {
            let rows = self.rows.iter().enumerate();
            let rows = rows.filter(|(_, row)| row.table == table);
            let rows = rows.map(|(slot, row)| (&*row.key, slot as Slot)).collect();
            self.order.build(table, rows);
        }
        &self.order
    }

    /// Keeps this table in order from now on; it must be empty.
    pub fn keep_order(&mut self, table: TableId) {
        self.order.build(table, Vec::new());
    }

    /// Bytes of rows, versions and intents, as they are counted against the bound.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.index.bytes() as u64
    }

    /// Places that rows may be at; those at and above it are free.
    pub fn slots(&self) -> Slot {
        self.rows.len() as Slot
    }

    /// The row at a place, unless the place is free.
    pub fn live(&self, slot: Slot) -> Option<&Row> {
        let row = self.rows.get(slot as usize)?;
        (row.table != FREE).then_some(row)
    }
}

/// The table of a place without a row; no table has this number.
const FREE: TableId = TableId(u32::MAX);

#[cfg(test)]
mod tests;

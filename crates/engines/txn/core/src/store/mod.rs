//! The rows of one partition: point index, order, versions, and what may be forgotten.
//!
//! A row's place (`Slot`) stays while the row lives. Tables that are hashed by their whole key get their
//! order at the first scan, since most are never scanned and keeping one costs more than the rest of a
//! write; all others are kept in order from the start.
//!
//! | file | what |
//! |---|---|
//! | `index` | from a key's hash to a row's place |
//! | `row` | a row in one cache line |
//! | `values` | values and long keys, in cells that are used again |
//! | `versions` | versions before the newest |
//! | `order` | keys of tables in order, for scans |
//! | `deleted` | those of them that are deleted, and still visible to older snapshots |
//! | `prefetch` | asking for memory before it is needed |

mod deleted;
mod index;
mod order;
mod prefetch;
mod row;
mod values;
mod versions;

use std::collections::VecDeque;

use dyno_txn_api::{Stamp, TableId};

use crate::message::Head;
use index::PointIndex;
use order::Visibility;
pub(crate) use order::{Order, Range};
use prefetch::prefetch;
use row::{FREE, NOTHING, ROW_BYTES, RowKey, VERSION_BYTES};
pub(crate) use row::{Intent, Row};
pub(crate) use values::Stored;
use values::{PREFETCH_LINES, Values};
use versions::Versions;

/// A row's place.
pub(crate) type Slot = u32;

/// Rows are allocated so many at a time: no growing moves those that are there.
const BLOCK: usize = 1 << 12;

#[derive(Debug)]
pub(crate) struct Store {
    seed: u64,
    index: PointIndex,
    blocks: Vec<Box<[Row]>>,
    /// Places that were ever used.
    slots: Slot,
    free: Vec<Slot>,
    values: Values,
    versions: Versions,
    intents: Vec<Intent>,
    free_intents: Vec<u32>,
    order: Order,
    /// Bytes of rows, versions and intents without their values.
    bytes: u64,
    /// Rows with something to forget, and the stamp before which nobody may need it any more.
    forget: VecDeque<(Stamp, Slot)>,
    /// How many were ever added to `forget`.
    left_behind: u64,
}

impl Store {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            index: PointIndex::new(),
            blocks: Vec::new(),
            slots: 0,
            free: Vec::new(),
            values: Values::new(),
            versions: Versions::new(),
            intents: Vec::new(),
            free_intents: Vec::new(),
            order: Order::new(seed),
            bytes: 0,
            forget: VecDeque::new(),
            left_behind: 0,
        }
    }

    pub fn hash(&self, table: TableId, key: &[u8]) -> u32 {
        index::hash(self.seed, table.0, key)
    }

    pub fn find(&self, hash: u32, table: TableId, key: &[u8]) -> Option<Slot> {
        match RowKey::short(key) {
            Some(short) => self.index.find(hash, |slot| {
                let row = self.row(slot);
                row.key == short && row.table == table
            }),
            None => self.index.find(hash, |slot| {
                let row = self.row(slot);
                row.table == table && row.key.bytes(&self.values) == key
            }),
        }
    }

    /// A new row without versions, whose key was read last at this stamp. It must not be there yet. No scan sees it
    /// until it gets an intent or a version.
    pub fn add(&mut self, hash: u32, table: TableId, key: &[u8], read: Stamp) -> Slot {
        let row = Row {
            table,
            hash,
            key: RowKey::new(key, &mut self.values),
            read,
            ..Row::VACANT
        };
        self.bytes += ROW_BYTES;
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = self.slots;
            if slot as usize / BLOCK == self.blocks.len() {
                self.blocks.push(vec![Row::VACANT; BLOCK].into());
            }
            self.slots += 1;
            slot
        });
        *self.row_mut(slot) = row;
        self.index.insert(hash, slot);
        slot
    }

    pub fn row(&self, slot: Slot) -> &Row {
        &self.blocks[slot as usize / BLOCK][slot as usize % BLOCK]
    }

    fn row_mut(&mut self, slot: Slot) -> &mut Row {
        row_of(&mut self.blocks, slot)
    }

    pub fn key(&self, slot: Slot) -> &[u8] {
        self.row(slot).key.bytes(&self.values)
    }

    /// The bytes of a value; none of a deleted row.
    pub fn value(&self, at: Stored) -> Option<&[u8]> {
        self.values.get(at)
    }

    /// The row's newest version at or before a stamp: when it was written, and its value.
    pub fn version(&self, slot: Slot, stamp: Stamp) -> (Stamp, Stored) {
        self.versions.at(self.row(slot), stamp)
    }

    pub fn intent(&self, slot: Slot) -> Option<&Intent> {
        match self.row(slot).intent {
            NOTHING => None,
            at => Some(&self.intents[at as usize]),
        }
    }

    pub fn note_read(&mut self, slot: Slot, stamp: Stamp) {
        let row = self.row_mut(slot);
        row.read = row.read.max(stamp);
    }

    /// Sets or changes the intent of the row; a foreign one must not be there.
    pub fn intend(&mut self, slot: Slot, owner: Head, value: Option<&[u8]>) {
        let value = value.map_or(Stored::NONE, |value| self.values.put(value));
        let row = row_of(&mut self.blocks, slot);
        if row.intent != NOTHING {
            let intent = &mut self.intents[row.intent as usize];
            let before = std::mem::replace(&mut intent.value, value);
            return self.values.free(before);
        }
        let before = row.visibility();
        self.bytes += VERSION_BYTES;
        let waiters = Vec::new();
        let intent = Intent {
            owner,
            value,
            waiters,
        };
        row.intent = match self.free_intents.pop() {
            Some(at) => {
                self.intents[at as usize] = intent;
                at
            }
            None => {
                self.intents.push(intent);
                (self.intents.len() - 1) as u32
            }
        };
        self.order_again(slot, before);
    }

    /// Tells the order of the row's table that the row was changed, and what it was before.
    fn order_again(&mut self, slot: Slot, before: Visibility) {
        let row = row_of(&mut self.blocks, slot);
        let now = row.visibility();
        if now != before {
            let key = row.key.bytes(&self.values);
            self.order.change(row.table, key, slot, (before, now));
        }
    }

    /// Notes that older versions of the row, or the row itself, can go once the horizon has reached `when`.
    fn forget_at(&mut self, when: Stamp, slot: Slot) {
        self.left_behind += 1;
        self.forget.push_back((when, slot));
    }

    /// How many times a row has left something behind that is to be forgotten one day.
    pub fn left_behind(&self) -> u64 {
        self.left_behind
    }

    pub fn wait_on(&mut self, slot: Slot, waiter: u64) {
        let at = self.row(slot).intent;
        if at != NOTHING {
            self.intents[at as usize].waiters.push(waiter);
        }
    }

    /// The row has no intent any more: its owner's stamp, its value, and who waits for it.
    fn take_intent(&mut self, slot: Slot) -> Option<(Stamp, Stored, Vec<u64>)> {
        let row = row_of(&mut self.blocks, slot);
        let at = std::mem::replace(&mut row.intent, NOTHING);
        if at == NOTHING {
            return None;
        }
        self.bytes -= VERSION_BYTES;
        self.free_intents.push(at);
        let intent = &mut self.intents[at as usize];
        let waiters = std::mem::take(&mut intent.waiters);
        Some((intent.owner.stamp, intent.value, waiters))
    }

    /// Takes the intent away, and returns who waits for it.
    pub fn drop_intent(&mut self, slot: Slot) -> Vec<u64> {
        let Some((_, value, waiters)) = self.take_intent(slot) else {
            return Vec::new();
        };
        self.values.free(value);
        self.order_again(slot, Visibility::Living);
        let row = self.row(slot);
        if row.value.is_none() {
            // Nothing but the intent kept the row.
            self.forget_at(row.stamp.max(1), slot);
        }
        waiters
    }

    /// Nothing came of a row that was added: it goes again.
    pub fn abandon(&mut self, slot: Slot) {
        let row = self.row(slot);
        if row.stamp == 0 && !row.has_intent() {
            self.forget_at(1, slot);
        }
    }

    /// Makes the intent a version, and returns who waits for it.
    pub fn keep_intent(&mut self, slot: Slot) -> Vec<u64> {
        let Some((stamp, value, waiters)) = self.take_intent(slot) else {
            return Vec::new();
        };
        match self.row(slot).stamp < stamp {
            true => self.add_version(slot, stamp, value),
            false => self.values.free(value),
        }
        self.order_again(slot, Visibility::Living);
        waiters
    }

    /// Adds a version that is newer than all others; an older one, as when a log is read again over a
    /// checkpoint that has later rows, is passed over.
    pub fn install(&mut self, slot: Slot, stamp: Stamp, value: Option<&[u8]>) {
        let row = self.row(slot);
        if row.stamp < stamp {
            let before = row.visibility();
            let value = value.map_or(Stored::NONE, |value| self.values.put(value));
            self.add_version(slot, stamp, value);
            self.order_again(slot, before);
        }
    }

    fn add_version(&mut self, slot: Slot, stamp: Stamp, value: Stored) {
        let row = row_of(&mut self.blocks, slot);
        let leaves = row.stamp != 0 || value.is_none();
        if row.stamp != 0 {
            self.bytes += VERSION_BYTES;
            self.versions.add(row);
        }
        (row.stamp, row.value) = (stamp, value);
        if leaves {
            self.forget_at(stamp, slot);
        }
    }

    /// Forgets versions that no transaction at or above the horizon can read, and rows that are deleted
    /// since before it; at most `most` rows are looked at. That somebody above the horizon has read a row which goes,
    /// and seen that there is nothing, must outlive it: `was_read` is told the hash of its key and the newest of those
    /// timestamps.
    ///
    /// Keeping the row until the horizon has passed that read would keep it for ever where something reads it again
    /// and again, and with it the step that each scan takes over it.
    pub fn forget_before(
        &mut self,
        horizon: Stamp,
        most: usize,
        mut was_read: impl FnMut(u32, Stamp),
    ) {
        /// So many rows ahead memory is asked for.
        const AHEAD: usize = 8;
        for _ in 0..most {
            match self.forget.front() {
                Some(&(stamp, _)) if stamp <= horizon => {}
                _ => return,
            }
            if let Some(&(_, slot)) = self.forget.get(2 * AHEAD) {
                prefetch(self.row(slot));
            }
            if let Some(&(_, slot)) = self.forget.get(AHEAD) {
                self.versions.prefetch(self.row(slot));
            }
            if let Some((_, slot)) = self.forget.pop_front()
                && let Some((hash, read)) = self.forget_row(slot, horizon)
            {
                was_read(hash, read);
            }
        }
    }

    /// The hash of the row's key and who read it last, where the row goes and that read is above the horizon.
    fn forget_row(&mut self, slot: Slot, horizon: Stamp) -> Option<(u32, Stamp)> {
        let row = row_of(&mut self.blocks, slot);
        if row.table == FREE {
            return None;
        }
        while let Some(value) = self.versions.drop_oldest(row, horizon) {
            self.values.free(value);
            self.bytes -= VERSION_BYTES;
        }
        let gone = row.value.is_none() && row.older == NOTHING && !row.has_intent();
        if !gone || row.stamp > horizon {
            return None;
        }
        let read = (row.hash, row.read);
        self.remove(slot);
        (read.1 > horizon).then_some(read)
    }

    fn remove(&mut self, slot: Slot) {
        let row = std::mem::replace(self.row_mut(slot), Row::VACANT);
        self.bytes -= ROW_BYTES;
        self.index.remove(row.hash, slot);
        let (key, was) = (row.key.bytes(&self.values), row.visibility());
        self.order
            .change(row.table, key, slot, (was, Visibility::Blank));
        row.key.free(&mut self.values);
        self.free.push(slot);
    }

    /// The order of a table, made when it is not there yet.
    pub fn order(&mut self, table: TableId) -> &Order {
        if !self.order.has(table) {
            let rows = self.blocks.iter().flat_map(|block| block.iter());
            let rows = rows.enumerate().filter(|(_, row)| row.table == table);
            let rows = rows.map(|(slot, row)| {
                let key = row.key.bytes(&self.values);
                (key, slot as Slot, row.visibility())
            });
            self.order.build(table, rows);
        }
        &self.order
    }

    /// Keeps this table in order from now on; it must be empty.
    pub fn keep_order(&mut self, table: TableId) {
        self.order.build(table, std::iter::empty());
    }

    /// Bytes of rows, versions and intents, as they are counted against the bound.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.values.used() + self.index.bytes() as u64
    }

    /// Places that rows may be at; those at and above it are free.
    pub fn slots(&self) -> Slot {
        self.slots
    }

    /// The row at a place, unless the place is free.
    pub fn live(&self, slot: Slot) -> Option<&Row> {
        let row = (slot < self.slots).then(|| self.row(slot))?;
        (row.table != FREE).then_some(row)
    }

    /// First of three steps before a row is used: asks for its place in the index.
    pub fn prefetch_index(&self, hash: u32) {
        prefetch(self.index.first_entry(hash));
    }

    /// Second step: asks for the row, if one may have this hash.
    pub fn prefetch_row(&self, hash: u32) -> Option<Slot> {
        let slot = self.index.find(hash, |_| true)?;
        self.prefetch_at(slot);
        Some(slot)
    }

    /// The same where the row's place is known.
    pub fn prefetch_at(&self, slot: Slot) {
        prefetch(self.row(slot));
    }

    /// Third step: asks for the newest value's bytes.
    pub fn prefetch_value(&self, slot: Slot) {
        let Some(value) = self.values.get(self.row(slot).value) else {
            return;
        };
        for line in value.chunks(64).take(PREFETCH_LINES) {
            prefetch(&line[0]);
        }
    }
}

fn row_of(blocks: &mut [Box<[Row]>], slot: Slot) -> &mut Row {
    &mut blocks[slot as usize / BLOCK][slot as usize % BLOCK]
}

#[cfg(test)]
mod tests;

//! The rows of one partition: point index, order, versions, and the collection of old versions.
//!
//! A row keeps its slot while it lives. Tables that are hashed by their whole key are put in order
//! at their first scan, because most of them are never scanned and keeping the order costs more
//! than the rest of a write. All other tables are kept in order from the start.
//!
//! | file | what |
//! |---|---|
//! | `index` | from a key's hash to a row's slot |
//! | `row` | one row, in one cache line |
//! | `values` | values and long keys, in cells that are reused |
//! | `versions` | older versions, until the horizon has passed them |
//! | `order` | the keys of a table in order, for scans |
//! | `deleted` | deleted keys that older snapshots still see |
//! | `prefetch` | loading memory before it is needed |

mod deleted;
mod index;
mod order;
mod prefetch;
mod row;
mod values;
mod versions;

use dyno_txn_api::{TableId, Timestamp};

use crate::message::Head;
use index::PointIndex;
use order::Visibility;
pub(crate) use order::{Order, Range};
use prefetch::prefetch;
use row::{FREE, NOTHING, ROW_BYTES, RowKey, VERSION_BYTES};
pub(crate) use row::{Intent, Row};
pub(crate) use values::Stored;
use values::{Values, prefetch_lines};
use versions::{Dropped, Versions};

/// The number of a row. It is stable while the row lives.
pub(crate) type Slot = u32;

/// Rows per allocation. Growing never moves a row.
const BLOCK: usize = 1 << 12;

#[derive(Debug)]
pub(crate) struct Store {
    seed: u64,
    index: PointIndex,
    blocks: Vec<Box<[Row]>>,
    /// Slots that were ever used.
    slots: Slot,
    free: Vec<Slot>,
    values: Values,
    versions: Versions,
    intents: Vec<Intent>,
    free_intents: Vec<u32>,
    order: Order,
    /// Bytes of rows, versions and intents, without those of their values.
    bytes: u64,
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

    /// Adds a row without versions, whose key was read last at timestamp `read`. The row must not
    /// exist. Scans skip it until it has an intent or a version.
    pub fn add(&mut self, hash: u32, table: TableId, key: &[u8], read: Timestamp) -> Slot {
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

    /// The bytes of a value, or none if it marks a deleted row.
    pub fn value(&self, at: Stored) -> Option<&[u8]> {
        self.values.get(at)
    }

    /// The row's newest version at or before a timestamp: its own timestamp, and its value.
    pub fn version(&self, slot: Slot, timestamp: Timestamp) -> (Timestamp, Stored) {
        self.versions.at(slot, self.row(slot), timestamp)
    }

    pub fn intent(&self, slot: Slot) -> Option<&Intent> {
        match self.row(slot).intent {
            NOTHING => None,
            at => Some(&self.intents[at as usize]),
        }
    }

    pub fn note_read(&mut self, slot: Slot, timestamp: Timestamp) {
        let row = self.row_mut(slot);
        row.read = row.read.max(timestamp);
    }

    /// Sets the intent of the row, or changes its value. An intent of another owner must not be
    /// there.
    pub fn intend(&mut self, slot: Slot, owner: Head, value: Option<&[u8]>) {
        let value = value.map_or(Stored::NONE, |value| self.values.insert(value));
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
        self.update_order(slot, before);
    }

    /// Updates the order of the row's table after the row's visibility may have changed from
    /// `before`.
    fn update_order(&mut self, slot: Slot, before: Visibility) {
        let row = row_of(&mut self.blocks, slot);
        let now = row.visibility();
        if now != before {
            let key = row.key.bytes(&self.values);
            self.order.change(row.table, key, slot, (before, now));
        }
    }

    /// How many times a write has left something behind that is to be dropped later.
    pub fn left_behind(&self) -> u64 {
        self.versions.added()
    }

    pub fn wait_on(&mut self, slot: Slot, waiter: u64) {
        let at = self.row(slot).intent;
        if at != NOTHING {
            self.intents[at as usize].waiters.push(waiter);
        }
    }

    /// Removes the intent of a row. Returns the owner's timestamp, the value, and the work that
    /// waits for it.
    fn remove_intent(&mut self, slot: Slot) -> Option<(Timestamp, Stored, Vec<u64>)> {
        let row = row_of(&mut self.blocks, slot);
        let at = std::mem::replace(&mut row.intent, NOTHING);
        if at == NOTHING {
            return None;
        }
        self.bytes -= VERSION_BYTES;
        self.free_intents.push(at);
        let intent = &mut self.intents[at as usize];
        let waiters = std::mem::take(&mut intent.waiters);
        Some((intent.owner.timestamp, intent.value, waiters))
    }

    /// Drops the intent, and returns the work that waits for it.
    pub fn drop_intent(&mut self, slot: Slot) -> Vec<u64> {
        let Some((_, value, waiters)) = self.remove_intent(slot) else {
            return Vec::new();
        };
        self.values.free(value);
        self.update_order(slot, Visibility::Living);
        let row = self.row(slot);
        if row.value.is_none() {
            // Without a value only the intent kept the row.
            self.versions.add_row(slot, row.timestamp.max(1));
        }
        waiters
    }

    /// Removes a row that was added for a write that failed, at the next collection.
    pub fn abandon(&mut self, slot: Slot) {
        let row = self.row(slot);
        if row.timestamp == 0 && !row.has_intent() {
            self.versions.add_row(slot, 1);
        }
    }

    /// Makes the intent the newest version, and returns the work that waits for it.
    pub fn keep_intent(&mut self, slot: Slot) -> Vec<u64> {
        let Some((timestamp, value, waiters)) = self.remove_intent(slot) else {
            return Vec::new();
        };
        if self.row(slot).timestamp < timestamp {
            self.add_version(slot, timestamp, value)
        } else {
            self.values.free(value)
        }
        self.update_order(slot, Visibility::Living);
        waiters
    }

    /// Adds a version if it is newer than all others. An older one is ignored: recovery replays the
    /// log over a checkpoint that may have later versions.
    pub fn install(&mut self, slot: Slot, timestamp: Timestamp, value: Option<&[u8]>) {
        let row = self.row(slot);
        if row.timestamp < timestamp {
            let before = row.visibility();
            let value = value.map_or(Stored::NONE, |value| self.values.insert(value));
            self.add_version(slot, timestamp, value);
            self.update_order(slot, before);
        }
    }

    fn add_version(&mut self, slot: Slot, timestamp: Timestamp, value: Stored) {
        let row = row_of(&mut self.blocks, slot);
        if row.timestamp != 0 {
            self.bytes += VERSION_BYTES;
            self.versions.add(slot, row, timestamp);
        }
        (row.timestamp, row.value) = (timestamp, value);
        if value.is_none() {
            self.versions.add_row(slot, timestamp);
        }
    }

    /// Drops versions that no transaction at or above the horizon can read, and rows that were
    /// deleted before it. Looks at no more than `most` rows. If a row goes that a transaction above
    /// the horizon has read and found deleted, that read must not be lost: `was_read` is given the
    /// hash of the key and the newest such timestamp.
    ///
    /// The row is not kept until the horizon has passed that read, because a row that is read again
    /// and again would then stay for ever, and each scan would have to step over it.
    pub fn forget_before(
        &mut self,
        horizon: Timestamp,
        most: usize,
        mut was_read: impl FnMut(u32, Timestamp),
    ) {
        /// How many entries ahead memory is prefetched.
        const AHEAD: usize = 8;
        for _ in 0..most {
            let Some(dropped) = self.versions.pop(horizon) else {
                return;
            };
            match self.versions.ahead(AHEAD) {
                Some(Dropped::Value(value)) => self.values.prefetch_free(value),
                Some(Dropped::Row(slot)) => prefetch(self.row(slot)),
                None => {}
            }
            match dropped {
                Dropped::Value(value) => {
                    self.values.free(value);
                    self.bytes -= VERSION_BYTES;
                }
                Dropped::Row(slot) => {
                    if let Some((hash, read)) = self.forget_row(slot, horizon) {
                        was_read(hash, read);
                    }
                }
            }
        }
    }

    /// Drops a row if it is still deleted, no snapshot sees an older version of it, and the horizon
    /// allows it. Returns the hash of its key and the timestamp of its last read if that read is
    /// above the horizon.
    fn forget_row(&mut self, slot: Slot, horizon: Timestamp) -> Option<(u32, Timestamp)> {
        let row = self.row(slot);
        // A later entry of the queue removes a row that still has older versions: each of them
        // comes before the entry of the deletion that replaced the last one.
        let stays = row.table == FREE
            || !row.value.is_none()
            || row.has_intent()
            || row.timestamp > horizon
            || self.versions.has(slot, row);
        if stays {
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

    /// The order of a table, which is built now if the table was not kept in order.
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

    /// Keeps a table in order from now on. The table must be empty.
    pub fn keep_order(&mut self, table: TableId) {
        self.order.build(table, std::iter::empty());
    }

    /// Bytes of rows, versions, intents and the index, which count against the partition's limit.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.values.used() + self.index.bytes() as u64
    }

    /// The end of the slots that rows may have. Those at and above it are free.
    pub fn slots(&self) -> Slot {
        self.slots
    }

    /// The row of a slot, unless the slot is free.
    pub fn live(&self, slot: Slot) -> Option<&Row> {
        let row = (slot < self.slots).then(|| self.row(slot))?;
        (row.table != FREE).then_some(row)
    }

    /// The first of three steps before a row is used: prefetches its index entry.
    pub fn prefetch_index(&self, hash: u32) {
        prefetch(self.index.first_entry(hash));
    }

    /// The second step: prefetches the row, if one may have this hash.
    pub fn prefetch_row(&self, hash: u32) -> Option<Slot> {
        let slot = self.index.find(hash, |_| true)?;
        self.prefetch_at(slot);
        Some(slot)
    }

    /// The second step for a row whose slot is known.
    pub fn prefetch_at(&self, slot: Slot) {
        prefetch(self.row(slot));
    }

    /// Beside the third step: prefetches the memory that the next so many values of this length
    /// will be written to.
    pub fn prefetch_room(&self, length: usize, count: usize) {
        self.values.prefetch_room(length, count);
    }

    /// The third step: prefetches the newest value.
    pub fn prefetch_value(&self, slot: Slot) {
        let Some(value) = self.values.get(self.row(slot).value) else {
            return;
        };
        prefetch_lines(value);
    }
}

fn row_of(blocks: &mut [Box<[Row]>], slot: Slot) -> &mut Row {
    &mut blocks[slot as usize / BLOCK][slot as usize % BLOCK]
}

#[cfg(test)]
mod tests;

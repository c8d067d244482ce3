//! What is to be dropped once the horizon has passed: the older versions of all rows, and deleted
//! rows. They lie in one queue, in the order in which they were left behind.
//!
//! Adding and dropping go through memory in order, so that neither waits for it, however many
//! versions there are. A row and each version name the next older version by its number in the
//! queue. Dropping a version leaves the number in the row, because to change it would be a miss in
//! the cache for each drop. So a search that follows a number checks that it has found the version
//! that was meant.

use std::collections::VecDeque;

use dyno_txn_api::Timestamp;

use super::Slot;
use super::row::{NOTHING, Row};
use super::values::Stored;

/// Entries per allocation, a power of two.
const BLOCK: usize = 1 << 12;

/// An older version of a row; or, without a version, a row that may be removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeftBehind {
    /// The horizon at which it can be dropped. For a version it is the timestamp of the next newer
    /// version.
    when: Timestamp,
    /// The version's own timestamp, or 0 if the entry is a row without a version.
    timestamp: Timestamp,
    value: Stored,
    slot: Slot,
    /// The number of the next older version, which may have been dropped since.
    older: u32,
}

/// What [`Versions::pop`] says is to be dropped.
#[derive(Debug, Clone, Copy)]
pub(super) enum Dropped {
    /// The value of an older version.
    Value(Stored),
    /// The row, if nothing has changed it since.
    Row(Slot),
}

#[derive(Debug)]
pub(super) struct Versions {
    /// The entries that were not dropped yet, and before them those of the first block that were.
    blocks: VecDeque<Vec<LeftBehind>>,
    /// The number of the first entry of the first block. Numbers wrap around.
    base: u32,
    /// How many entries of the first block were dropped.
    dropped: usize,
    /// A block to use next: one that was dropped whole.
    spare: Vec<LeftBehind>,
    /// How many entries were ever added.
    added: u64,
}

impl Versions {
    pub fn new() -> Self {
        Self {
            blocks: VecDeque::new(),
            base: 0,
            dropped: 0,
            spare: Vec::new(),
            added: 0,
        }
    }

    /// How many entries were ever added.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// The row's newest version at or before a timestamp: its own timestamp, and its value.
    pub fn at(&self, slot: Slot, row: &Row, timestamp: Timestamp) -> (Timestamp, Stored) {
        let (mut newest, mut value, mut older) = (row.timestamp, row.value, row.older);
        while newest > timestamp {
            match self.version(slot, older, newest) {
                Some(version) => {
                    (newest, value, older) = (version.timestamp, version.value, version.older);
                }
                None => return (0, Stored::NONE),
            }
        }
        (newest, value)
    }

    /// Whether a row has older versions.
    pub fn has(&self, slot: Slot, row: &Row) -> bool {
        self.version(slot, row.older, row.timestamp).is_some()
    }

    /// The version of this number, if it is still there: the version of this row that another one
    /// replaced at `when`. A number outlives its version, and after 2^32 others it is used again.
    fn version(&self, slot: Slot, number: u32, when: Timestamp) -> Option<&LeftBehind> {
        let place = number.wrapping_sub(self.base) as usize;
        if place < self.dropped {
            return None;
        }
        let entry = self.blocks.get(place / BLOCK)?.get(place % BLOCK)?;
        (entry.slot == slot && entry.when == when && entry.timestamp != 0).then_some(entry)
    }

    /// Adds the row's present version, which another one replaces at `when`, and has the row name
    /// it as the newest of its older ones.
    pub fn add(&mut self, slot: Slot, row: &mut Row, when: Timestamp) {
        row.older = self.push(LeftBehind {
            when,
            timestamp: row.timestamp,
            value: row.value,
            slot,
            older: row.older,
        });
    }

    /// Adds a row that can be removed when the horizon has reached `when`, unless it has changed
    /// until then.
    pub fn add_row(&mut self, slot: Slot, when: Timestamp) {
        self.push(LeftBehind {
            when,
            timestamp: 0,
            value: Stored::NONE,
            slot,
            older: NOTHING,
        });
    }

    /// Returns the number of the new entry.
    fn push(&mut self, entry: LeftBehind) -> u32 {
        self.added += 1;
        if self.blocks.back().is_none_or(|block| block.len() == BLOCK) {
            let mut block = std::mem::take(&mut self.spare);
            block.reserve_exact(BLOCK);
            self.blocks.push_back(block);
        }
        let before = (self.blocks.len() - 1) * BLOCK;
        let Some(block) = self.blocks.back_mut() else {
            unreachable!("one was just pushed if there was none")
        };
        let place = before + block.len();
        block.push(entry);
        self.base.wrapping_add(place as u32)
    }

    /// Removes the first entry if the horizon has reached it.
    pub fn pop(&mut self, horizon: Timestamp) -> Option<Dropped> {
        let block = self.blocks.front()?;
        let entry = *block.get(self.dropped)?;
        if entry.when > horizon {
            return None;
        }
        self.dropped += 1;
        if self.dropped == BLOCK {
            self.spare = self.blocks.pop_front().unwrap_or_default();
            self.spare.clear();
            self.base = self.base.wrapping_add(BLOCK as u32);
            self.dropped = 0;
        }
        Some(entry.what())
    }

    /// The entry that is so many places behind the first one, so that memory which its drop needs
    /// can be prefetched.
    pub fn ahead(&self, places: usize) -> Option<Dropped> {
        let place = self.dropped + places;
        let entry = self.blocks.get(place / BLOCK)?.get(place % BLOCK)?;
        Some(entry.what())
    }
}

impl LeftBehind {
    fn what(&self) -> Dropped {
        match self.timestamp {
            0 => Dropped::Row(self.slot),
            _ => Dropped::Value(self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A version's value that says by which timestamp it was written.
    fn value(timestamp: Timestamp) -> Stored {
        Stored::from_bits(timestamp)
    }

    fn write(versions: &mut Versions, slot: Slot, row: &mut Row, timestamp: Timestamp) {
        if row.timestamp != 0 {
            versions.add(slot, row, timestamp);
        }
        (row.timestamp, row.value) = (timestamp, value(timestamp));
    }

    #[test]
    fn numbers_of_dropped_versions_lead_nowhere() {
        // So few rows over so many blocks that each row's number is far behind when it is used
        // again, and numbers wrap around.
        let mut versions = Versions::new();
        versions.base = u32::MAX - 3 * BLOCK as u32 + 1;
        let mut rows = [Row::VACANT; 3];
        let end = 9 * BLOCK as u64;
        for timestamp in 1..end {
            let slot = (timestamp % 3) as usize;
            write(&mut versions, slot as Slot, &mut rows[slot], timestamp);
            let horizon = timestamp.saturating_sub(100);
            while let Some(dropped) = versions.pop(horizon) {
                assert!(matches!(dropped, Dropped::Value(_)));
            }
        }
        assert_eq!(versions.added(), end - 4);
        for (slot, row) in rows.iter().enumerate() {
            let newest = row.timestamp;
            for back in 0..33 {
                let wanted = newest - 3 * back;
                let seen = versions.at(slot as Slot, row, wanted + 2);
                assert_eq!(seen, (wanted, value(wanted)));
            }
            assert_eq!(versions.at(slot as Slot, row, end - 200), (0, Stored::NONE));
            assert!(versions.has(slot as Slot, row));
        }
        while versions.pop(end).is_some() {}
        assert!(!versions.has(1, &rows[1]));
    }
}

//! The older versions of all rows. Those of one row form a ring, from the newest to the oldest and
//! on to the newest again, so that adding the newest and dropping the oldest take one step, however
//! many there are.

use dyno_txn_api::Timestamp;

use super::prefetch::prefetch;
use super::row::{NOTHING, Row};
use super::values::Stored;

#[derive(Debug, Clone, Copy)]
struct Version {
    timestamp: Timestamp,
    value: Stored,
    /// The next older version, if any. Of a free entry: the next free entry.
    older: u32,
    /// The next newer version. Of the newest version: the oldest.
    newer: u32,
}

#[derive(Debug)]
pub(crate) struct Versions {
    versions: Vec<Version>,
    free: u32,
}

impl Versions {
    pub fn new() -> Self {
        Self {
            versions: Vec::new(),
            free: NOTHING,
        }
    }

    /// The row's newest version at or before a timestamp: its own timestamp, and its value.
    pub fn at(&self, row: &Row, timestamp: Timestamp) -> (Timestamp, Stored) {
        if row.timestamp <= timestamp {
            return (row.timestamp, row.value);
        }
        let mut at = row.older;
        while at != NOTHING {
            let version = &self.versions[at as usize];
            if version.timestamp <= timestamp {
                return (version.timestamp, version.value);
            }
            at = version.older;
        }
        (0, Stored::NONE)
    }

    /// Makes the row's present version the newest of its older ones.
    pub fn add(&mut self, row: &mut Row) {
        let version = Version {
            timestamp: row.timestamp,
            value: row.value,
            older: row.older,
            newer: NOTHING,
        };
        let at = match self.free {
            NOTHING => {
                self.versions.push(version);
                (self.versions.len() - 1) as u32
            }
            at => {
                self.free = self.versions[at as usize].older;
                self.versions[at as usize] = version;
                at
            }
        };
        let oldest = match row.older {
            NOTHING => at,
            head => std::mem::replace(&mut self.versions[head as usize].newer, at),
        };
        self.versions[at as usize].newer = oldest;
        row.older = at;
        // The next free entry was freed long ago, and is not in the cache.
        if let Some(next) = self.versions.get(self.free as usize) {
            prefetch(next);
        }
    }

    /// Prefetches the newest of the row's older versions, where [`Versions::drop_oldest`] begins.
    pub fn prefetch(&self, row: &Row) {
        if let Some(version) = self.versions.get(row.older as usize) {
            prefetch(version);
        }
    }

    /// Removes the row's oldest version if no transaction at or above the horizon reads it, because
    /// the next newer version is at or below the horizon too.
    pub fn drop_oldest(&mut self, row: &mut Row, horizon: Timestamp) -> Option<Stored> {
        let head = row.older;
        if head == NOTHING {
            return None;
        }
        let oldest = self.versions[head as usize].newer;
        let Version { value, newer, .. } = self.versions[oldest as usize];
        let next = match oldest == head {
            true => row.timestamp,
            false => self.versions[newer as usize].timestamp,
        };
        if next > horizon {
            return None;
        }
        if oldest == head {
            row.older = NOTHING;
        } else {
            self.versions[newer as usize].older = NOTHING;
            self.versions[head as usize].newer = newer;
        }
        self.versions[oldest as usize].older = self.free;
        self.free = oldest;
        Some(value)
    }
}

//! Counts and remembers the damaged pages that were met.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};

use super::Store;
use crate::error::{Damage, StoreError};

/// Damaged pages remembered by number. Further ones are counted when they are read and not
/// remembered, so that the list stays small when all of the memory is damaged.
const MOST_REMEMBERED: usize = 4096;

/// The damage met since the store was opened.
#[derive(Debug, Default)]
pub struct DamageLog {
    refused: AtomicU64,
    damaged: Mutex<DamagedPages>,
}

#[derive(Debug, Default)]
struct DamagedPages {
    /// Each page with the reason, which is taken out when it is reported.
    pages: BTreeMap<u64, Option<Damage>>,
    unreported: usize,
}

impl DamageLog {
    fn damaged(&self) -> MutexGuard<'_, DamagedPages> {
        // The map and the count differ at most by one after a panic, which tells a page once more.
        self.damaged.lock()
    }
}

impl Store {
    /// Notes that `page` was met damaged, by a caller or in the background.
    #[cold]
    pub(super) fn note_damage(&self, error: &StoreError) {
        let StoreError::Corrupt { page, what } = error else {
            return;
        };
        let mut damaged = self.damage.damaged();
        if damaged.pages.len() < MOST_REMEMBERED && !damaged.pages.contains_key(page) {
            damaged.pages.insert(*page, Some(what.clone()));
            damaged.unreported += 1;
        }
    }

    /// Notes that a read was refused because its page is damaged.
    #[cold]
    pub(super) fn refuse_damaged(&self, error: &StoreError) {
        if matches!(error, StoreError::Corrupt { .. }) {
            self.damage.refused.fetch_add(1, Relaxed);
            self.note_damage(error);
        }
    }

    /// Reads that were refused because their page is damaged, since the store was opened.
    pub fn corrupt_reads(&self) -> u64 {
        self.damage.refused.load(Relaxed)
    }

    /// Different damaged pages that were met since the store was opened, 4096 at most. A page that
    /// was written anew since then is whole again, and still counted here.
    pub fn corrupt_pages(&self) -> u64 {
        self.damage.damaged().pages.len() as u64
    }

    /// Damaged pages that were met since the last call, each reported once, for a log.
    pub fn unreported_damage(&self) -> Vec<(u64, Damage)> {
        let mut damaged = self.damage.damaged();
        if damaged.unreported == 0 {
            return Vec::new();
        }
        damaged.unreported = 0;
        let unreported = damaged.pages.iter_mut();
        unreported
            .filter_map(|(&page, what)| what.take().map(|what| (page, what)))
            .collect()
    }
}

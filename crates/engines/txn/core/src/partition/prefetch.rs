//! Prefetches the rows of several messages before the first of them is handled, so that their cache
//! misses overlap.

use dyno_txn_api::{Operation, Request};

use super::access::KeyRef;
use super::{Partition, direct};
use crate::message::Message;
use crate::store::Slot;

/// The most keys that one call prefetches. More would evict each other from the first-level cache.
const KEYS_MAX: usize = 64;

impl Partition {
    /// Prefetches the rows that these messages name, so that [`Partition::handle`] finds them in
    /// the processor's cache. Calling it is optional, and pays off for 4 to 32 messages that
    /// arrived together.
    pub fn prefetch<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) {
        self.prefetch_keys(messages.into_iter().flat_map(keys_of));
    }

    /// Prefetches the rows of encoded messages, for [`Partition::handle_bytes`].
    pub fn prefetch_bytes<'a>(&self, messages: impl IntoIterator<Item = &'a [u8]>) {
        self.prefetch_keys(messages.into_iter().flat_map(direct::keys_of));
    }

    /// Prefetches these rows and their values.
    pub(super) fn prefetch_slots(&self, slots: &[Slot]) {
        for slot in slots {
            self.store.prefetch_at(*slot);
        }
        for slot in slots {
            self.store.prefetch_value(*slot);
        }
    }

    /// Prefetches the rows of these keys, and the values of those that come with `true`.
    ///
    /// Each step goes through all keys before the next one begins: the index entries are loaded
    /// while later keys are hashed, and the rows while later entries are looked at.
    pub(super) fn prefetch_keys<'a>(&self, keys: impl IntoIterator<Item = (KeyRef<'a>, bool)>) {
        let (mut hashes, mut count) = ([(0, false); KEYS_MAX], 0);
        for ((key, reads), entry) in keys.into_iter().zip(&mut hashes) {
            *entry = (self.store.hash(key.table, key.bytes), reads);
            self.store.prefetch_index(entry.0);
            count += 1;
        }
        let mut slots = [None; KEYS_MAX];
        for ((hash, reads), slot) in hashes[..count].iter().zip(&mut slots) {
            // A write looks at the row, but seldom at its value.
            *slot = self.store.prefetch_row(*hash).filter(|_| *reads);
        }
        for slot in slots[..count].iter().flatten() {
            self.store.prefetch_value(*slot);
        }
    }
}

/// The keys of a message, each with whether its value is read.
fn keys_of(message: &Message) -> impl Iterator<Item = (KeyRef<'_>, bool)> {
    let operations: &[Operation] = match message {
        Message::OneShot {
            request: Request::Operations(operations),
            ..
        }
        | Message::Execute { operations, .. } => operations,
        _ => &[],
    };
    operations.iter().filter_map(|operation| match operation {
        Operation::Get(key) => Some((key.into(), true)),
        Operation::Write(key, _) => Some((key.into(), false)),
        Operation::Scan(_) => None,
    })
}

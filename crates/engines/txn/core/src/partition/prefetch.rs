//! Prefetches the rows of several messages before the first of them is handled, so that their cache
//! misses overlap.

use dyno_txn_api::{Operation, Request};

use super::access::{ChangeRef, KeyRef};
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

    /// Prefetches the rows of these keys, the values that are read, and the memory for those that
    /// are written.
    ///
    /// Each step goes through all keys before the next one begins: the index entries are loaded
    /// while later keys are hashed, and the rows while later entries are looked at.
    pub(super) fn prefetch_keys<'a>(&self, keys: impl IntoIterator<Item = (KeyRef<'a>, Use)>) {
        let (mut hashes, mut count) = ([(0, Use::Read); KEYS_MAX], 0);
        for ((key, of), entry) in keys.into_iter().zip(&mut hashes) {
            *entry = (self.store.hash(key.table, key.bytes), of);
            self.store.prefetch_index(entry.0);
            count += 1;
        }
        let hashes = &hashes[..count];
        let mut slots = [None; KEYS_MAX];
        // The length of the first value that is written, and how many have it: nearly always all.
        let (mut length, mut written) = (0, 0);
        for ((hash, of), slot) in hashes.iter().zip(&mut slots) {
            let found = self.store.prefetch_row(*hash);
            match of {
                Use::Read => *slot = found,
                // A write looks at the row, but seldom at its value.
                Use::Write(bytes) => {
                    length = if written == 0 { *bytes } else { length };
                    written += usize::from(*bytes == length);
                }
            }
        }
        self.store.prefetch_room(length, written);
        for slot in slots[..count].iter().flatten() {
            self.store.prefetch_value(*slot);
        }
    }
}

/// What a transaction does with a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use {
    Read,
    /// It writes a value of so many bytes; 0 if it deletes the row, or if the length is not known.
    Write(usize),
}

/// The keys of a message, each with what is done with its row.
fn keys_of(message: &Message) -> impl Iterator<Item = (KeyRef<'_>, Use)> {
    let operations: &[Operation] = match message {
        Message::OneShot {
            request: Request::Operations(operations),
            ..
        }
        | Message::Execute { operations, .. } => operations,
        _ => &[],
    };
    operations.iter().filter_map(|operation| match operation {
        Operation::Get(key) => Some((key.into(), Use::Read)),
        Operation::Write(key, change) => Some((key.into(), ChangeRef::from(change).to_use())),
        Operation::Scan(_) => None,
    })
}

impl ChangeRef<'_> {
    pub(super) fn to_use(self) -> Use {
        match self {
            ChangeRef::Put(value) | ChangeRef::Insert(value) => Use::Write(value.len()),
            ChangeRef::Delete | ChangeRef::Update(_) => Use::Write(0),
        }
    }
}

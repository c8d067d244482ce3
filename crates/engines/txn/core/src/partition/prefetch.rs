//! Asking for the rows of several messages at once, before the first of them is handled: then their waits
//! for memory overlap.

use dyno_txn_api::{Operation, Request};

use super::access::KeyRef;
use super::{Partition, direct};
use crate::message::Message;
use crate::store::Slot;

/// Keys that one call asks for at most; more would push each other out of the processor's first cache.
const KEYS_MAX: usize = 64;

impl Partition {
    /// Asks for the rows that these messages name, so that [`Partition::handle`] finds them in the
    /// processor's cache. It changes nothing, and may be left out; it pays for some 4 to 32 messages that
    /// came together.
    pub fn prefetch<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) {
        self.prefetch_keys(messages.into_iter().flat_map(keys_of));
    }

    /// The same for messages that are still in bytes, before [`Partition::handle_bytes`].
    pub fn prefetch_bytes<'a>(&self, messages: impl IntoIterator<Item = &'a [u8]>) {
        self.prefetch_keys(messages.into_iter().flat_map(direct::keys_of));
    }

    /// The same for rows that will be read at these places.
    pub(super) fn prefetch_slots(&self, slots: &[Slot]) {
        for slot in slots {
            self.store.prefetch_at(*slot);
        }
        for slot in slots {
            self.store.prefetch_value(*slot);
        }
    }

    /// The same for keys, and whether their values are read.
    pub(super) fn prefetch_keys<'a>(&self, keys: impl IntoIterator<Item = (KeyRef<'a>, bool)>) {
        let (mut hashes, mut count) = ([(0, false); KEYS_MAX], 0);
        for ((key, reads), place) in keys.into_iter().zip(&mut hashes) {
            *place = (self.store.hash(key.table, key.bytes), reads);
            self.store.prefetch_index(place.0);
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

/// Keys, and whether their values are read.
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

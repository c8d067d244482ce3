//! Asking for the rows of several messages at once, before the first of them is handled: then their waits
//! for memory overlap.

use dyno_txn_api::{Key, Operation, Request};

use super::Partition;
use crate::message::Message;

/// Keys that one call asks for at most; more would push each other out of the processor's first cache.
const KEYS_MAX: usize = 64;

impl Partition {
    /// Asks for the rows that these messages name, so that [`Partition::handle`] finds them in the
    /// processor's cache. It changes nothing, and may be left out; it pays for some 4 to 32 messages that
    /// came together.
    pub fn prefetch<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) {
        let keys = messages.into_iter().flat_map(keys_of);
        let (mut hashes, mut count) = ([(0, false); KEYS_MAX], 0);
        for ((key, reads), place) in keys.zip(&mut hashes) {
            *place = (self.store.hash(key.table, &key.bytes), reads);
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
fn keys_of(message: &Message) -> impl Iterator<Item = (&Key, bool)> {
    let operations: &[Operation] = match message {
        Message::OneShot {
            request: Request::Operations(operations),
            ..
        }
        | Message::Execute { operations, .. } => operations,
        _ => &[],
    };
    operations.iter().filter_map(|operation| match operation {
        Operation::Get(key) => Some((key, true)),
        Operation::Write(key, _) => Some((key, false)),
        Operation::Scan(_) => None,
    })
}

//! The one-shot transactions that arrive in one pass. They are handled as a batch, so that their
//! waits for memory overlap.

use std::ops::Range;

use dyno_txn_core::message::{Address, PartitionId};

use super::shard::ShardState;
use crate::threads::Envelope;

/// Transactions in one batch: their keys fit into what one prefetch covers.
const BATCH_MOST: usize = 16;
/// Bytes of encoded transactions for which the buffer is kept between passes.
const KEPT_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Batch {
    list: Vec<Incoming>,
    /// The encoded ones, one after the other.
    bytes: Vec<u8>,
}

/// A transaction that waits for its batch.
pub(crate) enum Incoming {
    Decoded(Envelope),
    Encoded {
        from: Address,
        to: PartitionId,
        /// Where it lies in [`Batch::bytes`].
        range: Range<usize>,
    },
}

impl Incoming {
    pub fn to(&self) -> PartitionId {
        match self {
            Incoming::Decoded(envelope) => envelope.to,
            Incoming::Encoded { to, .. } => *to,
        }
    }
}

impl Batch {
    pub fn push(&mut self, envelope: Envelope) {
        self.list.push(Incoming::Decoded(envelope));
    }

    pub fn push_bytes(&mut self, from: Address, to: PartitionId, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let range = start..self.bytes.len();
        self.list.push(Incoming::Encoded { from, to, range });
    }

    pub fn is_full(&self) -> bool {
        self.list.len() >= BATCH_MOST
    }

    /// Loads the rows of all of them towards the processor, so that they miss the cache together
    /// and not one after the other. A single one has nothing to overlap with, and would only look
    /// its keys up twice.
    pub fn prefetch(&self, shard: &ShardState) {
        if self.list.len() < 2 {
            return;
        }
        for (slot, hosted) in shard.hosted.iter().enumerate() {
            let here = self.list.iter();
            let here = here.filter(|incoming| shard.layout.slot(incoming.to()) == slot);
            let encoded = here.clone().filter_map(|incoming| match incoming {
                Incoming::Encoded { range, .. } => Some(&self.bytes[range.clone()]),
                Incoming::Decoded(_) => None,
            });
            hosted.partition.prefetch_bytes(encoded);
            let decoded = here.filter_map(|incoming| match incoming {
                Incoming::Encoded { .. } => None,
                Incoming::Decoded(envelope) => Some(&envelope.message),
            });
            hosted.partition.prefetch(decoded);
        }
    }

    /// In the order of their arrival, with the bytes that their ranges are of.
    pub fn drain(&mut self) -> (impl Iterator<Item = Incoming>, &[u8]) {
        (self.list.drain(..), &self.bytes)
    }

    /// Empties the buffer of a batch that was drained. One large transaction does not keep its
    /// memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

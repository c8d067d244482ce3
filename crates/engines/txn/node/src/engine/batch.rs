//! The one-shot transactions that arrive in one pass. They are handled as a batch, so that their
//! waits for memory overlap.

use std::ops::Range;

use dyno_txn_core::message::{Address, Message, PartitionId};

use super::shard::ShardState;
use crate::threads::Envelope;

/// Transactions in one batch: their keys fit into what one prefetch covers.
const BATCH_MOST: usize = 16;
/// Bytes of encoded transactions for which the buffer is kept between passes.
const KEPT_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Batch {
    list: Vec<Waiting>,
    /// The encoded ones, one after the other.
    bytes: Vec<u8>,
}

struct Waiting {
    from: Address,
    to: PartitionId,
    content: Content,
}

enum Content {
    Decoded(Message),
    /// Where it lies in [`Batch::bytes`].
    Encoded(Range<usize>),
}

/// A transaction whose turn it is.
pub(crate) struct Incoming<'a> {
    pub from: Address,
    pub to: PartitionId,
    pub content: IncomingContent<'a>,
}

pub(crate) enum IncomingContent<'a> {
    Decoded(Message),
    Encoded(&'a [u8]),
}

impl Batch {
    pub fn push(&mut self, envelope: Envelope) {
        let Envelope { from, to, message } = envelope;
        let content = Content::Decoded(message);
        self.list.push(Waiting { from, to, content });
    }

    pub fn push_bytes(&mut self, from: Address, to: PartitionId, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let content = Content::Encoded(start..self.bytes.len());
        self.list.push(Waiting { from, to, content });
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
            let here = here.filter(|waiting| shard.layout.slot(waiting.to) == slot);
            let encoded = here.clone().filter_map(|waiting| match &waiting.content {
                Content::Encoded(range) => Some(&self.bytes[range.clone()]),
                Content::Decoded(_) => None,
            });
            hosted.partition.prefetch_bytes(encoded);
            let decoded = here.filter_map(|waiting| match &waiting.content {
                Content::Encoded(_) => None,
                Content::Decoded(message) => Some(message),
            });
            hosted.partition.prefetch(decoded);
        }
    }

    /// In the order of their arrival.
    pub fn drain(&mut self) -> impl Iterator<Item = Incoming<'_>> {
        let bytes = &self.bytes;
        self.list.drain(..).map(move |waiting| Incoming {
            from: waiting.from,
            to: waiting.to,
            content: match waiting.content {
                Content::Decoded(message) => IncomingContent::Decoded(message),
                Content::Encoded(range) => IncomingContent::Encoded(&bytes[range]),
            },
        })
    }

    /// Empties the buffer of a batch that was drained. One large transaction does not keep its
    /// memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

//! One-shots that clients have sent in one pass: they are handled together, so that their waits for memory overlap.

use std::ops::Range;

use dyno_net::PortId;
use dyno_txn_core::is_direct;
use dyno_txn_core::message::{Address, Message, PartitionId};

use super::work::Work;
use crate::hello::ORACLE;

/// Messages of clients that are handled together: their keys fit into what a prefetch asks for.
const TOGETHER: usize = 16;
/// Bytes of them that room is kept for.
const TOGETHER_BYTES: usize = 1 << 20;

/// One-shots that are handled together.
#[derive(Default)]
pub(crate) struct Together {
    list: Vec<(Address, PartitionId, Came)>,
    bytes: Vec<u8>,
}

/// One of them: decoded, or where its bytes are.
pub(crate) enum Came {
    Message(Message),
    Bytes(Range<usize>),
}

impl Work {
    /// A client's message in bytes, if it is one that needs nothing but its partition: those are handled where they
    /// lie. Whether it was taken.
    pub fn hear_bytes(&mut self, port: PortId, to: PartitionId, bytes: &[u8]) -> bool {
        let whole = self.shared.remote.as_ref().is_none_or(|it| it.is_whole());
        let alone = self.elsewhere.is_none() && to != ORACLE;
        if !(whole && alone && self.shared.oracle.is_ready(self.wall()) && is_direct(bytes)) {
            return false;
        }
        let start = self.together.bytes.len();
        self.together.bytes.extend_from_slice(bytes);
        let what = Came::Bytes(start..self.together.bytes.len());
        self.add_together(Address::Client(port.number()), to, what);
        true
    }

    /// One more of them.
    pub fn add_together(&mut self, from: Address, to: PartitionId, what: Came) {
        self.together.list.push((from, to, what));
        if self.together.list.len() == TOGETHER {
            self.handle_together();
        }
    }

    /// Handles the one-shots of one pass: their rows are asked for first, so that the waits for memory
    /// overlap.
    pub fn handle_together(&mut self) {
        let mut together = std::mem::take(&mut self.together);
        let (list, bytes) = (&mut together.list, &together.bytes);
        if list.len() > 1 {
            for (place, hosted) in self.hosted.iter().enumerate() {
                let partition = &hosted.partition;
                let mine = list
                    .iter()
                    .filter(|(_, to, _)| self.layout.place(*to) == place);
                partition.prefetch_bytes(mine.clone().filter_map(|(.., what)| match what {
                    Came::Bytes(range) => Some(&bytes[range.clone()]),
                    Came::Message(_) => None,
                }));
                partition.prefetch(mine.filter_map(|(.., what)| match what {
                    Came::Bytes(_) => None,
                    Came::Message(message) => Some(message),
                }));
            }
        }
        for (from, to, what) in list.drain(..) {
            match what {
                Came::Message(message) => self.hand_in(from, to, message),
                Came::Bytes(range) => {
                    let partition = &mut self.hosted[self.layout.place(to)].partition;
                    let bytes = &bytes[range];
                    let taken = partition.handle_bytes(self.now, from, bytes, &mut self.effects);
                    if let Err(error) = taken {
                        self.failed.get_or_insert(error);
                    }
                }
            }
            self.dispatch(to, None);
        }
        together.bytes.clear();
        together.bytes.shrink_to(TOGETHER_BYTES);
        self.together = together;
    }
}

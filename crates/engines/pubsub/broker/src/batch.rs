//! A batch that a producer sent, on its way to the log.

use std::sync::Arc;

use bytes::Bytes;
use dyno_net::{Head, Outbox};
use dyno_pubsub::record::{Codec, ROW_RECORDS_MAX, Records, decompress};
use dyno_pubsub::wire::{ANSWER, Message, Produced};

use dyno_pubsub::{Error, Result};

use crate::error::{bad, failed};
use crate::memory::Charge;

/// Records of one producer with consecutive sequences. All but their sequence was checked.
#[derive(Debug)]
pub struct Batch {
    pub producer_id: i64,
    pub first_sequence: i64,
    pub count: u32,
    pub codec: Codec,
    pub body: Bytes,
    pub ack: Ack,
    /// Released when the records have been copied into rows.
    pub _charge: Charge,
}

impl Batch {
    pub fn last_sequence(&self) -> i64 {
        self.first_sequence + i64::from(self.count) - 1
    }
}

/// Where the answer to a request goes.
#[derive(Debug, Clone)]
pub struct Ack {
    pub outbox: Arc<Outbox>,
    pub request: u32,
}

impl Ack {
    /// Answers that the records are committed.
    pub fn produced(&self, base_offset: i64, duplicate: bool) {
        self.produced_quietly(base_offset, duplicate);
        self.outbox.wake();
    }

    /// Answers that the records are committed, as one of several answers, the last of which wakes
    /// the writer.
    pub fn produced_quietly(&self, base_offset: i64, duplicate: bool) {
        self.push(&Produced {
            base_offset,
            duplicate,
        });
    }

    /// Answers that the request was not carried out.
    pub fn refused(&self, error: &Error) {
        self.answer(&failed(error));
    }

    /// Puts any answer into the client's outbox.
    pub fn answer<M: Message>(&self, message: &M) {
        self.push(message);
        self.outbox.wake();
    }

    /// Puts an answer into the client's outbox, as one of several, the last of which wakes the
    /// writer.
    fn push<M: Message>(&self, message: &M) {
        let head = Head {
            verb: M::VERB as u8,
            flags: ANSWER,
            request: self.request,
        };
        // Answers are far below the 4 GiB that a frame can hold, the only thing that can be wrong.
        if self.outbox.push_quietly(head, &message.parts()).is_err() {
            self.outbox.close();
        }
    }
}

/// Checks that a body is `count` whole records, so that no reader stumbles over it later.
pub fn check(codec: Codec, body: Bytes, count: u32) -> Result<()> {
    let raw = decompress(codec, body)?;
    let mut found = 0_u64;
    for record in Records::new(raw) {
        record?;
        found += 1;
    }
    if found != u64::from(count) || found == 0 {
        return Err(bad(format!(
            "the body holds {found} records, the request says {count}"
        )));
    }
    // A compressed body becomes a row as it is. One with too many records would be found out only
    // when it is merged, where it would take the batches of other producers down with it.
    if codec != Codec::None && found > ROW_RECORDS_MAX as u64 {
        return Err(bad(format!(
            "the compressed body holds {found} records, and a row holds {ROW_RECORDS_MAX} at most"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use dyno_pubsub::record::{compress, encode};

    use super::*;

    fn lz4(records: usize) -> Bytes {
        let mut raw = Vec::new();
        for _ in 0..records {
            encode(&mut raw, 0, None, &[], b"").unwrap();
        }
        compress(Codec::Lz4, &raw).unwrap().into()
    }

    #[test]
    fn a_compressed_body_that_no_row_can_hold_is_refused_before_it_meets_others() {
        let most = ROW_RECORDS_MAX;
        check(Codec::Lz4, lz4(most), most as u32).unwrap();
        let error = check(Codec::Lz4, lz4(most + 1), most as u32 + 1).unwrap_err();
        assert_eq!(error.code(), "bad-argument");
    }
}

//! The messages that a consumer is given.

use bytes::Bytes;

use crate::error::Result;
use crate::fetch::StoredRow;
use crate::record::Headers;
use crate::topic::Position;

/// A record with its partition and offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The number of the partition.
    pub partition: i32,
    /// The offset of the record in its partition.
    pub offset: i64,
    /// The producer's time, in microseconds since 1970.
    pub time_us: i64,
    /// When it was appended, by the server's clock, in microseconds since 1970.
    pub appended_at_us: i64,
    /// The key, which decided the partition; `None` if the producer gave none.
    pub key: Option<Bytes>,
    /// Names and values, in the order in which the producer gave them; names may repeat.
    pub headers: Headers,
    /// What the producer sent.
    pub value: Bytes,
}

impl Message {
    /// The position of the record, which no other record of the topic has.
    pub fn position(&self) -> Position {
        Position {
            partition: self.partition,
            offset: self.offset,
        }
    }
}

/// Adds the records of a row to `messages`, from an offset on.
///
/// # Errors
/// `damaged`.
pub(super) fn unpack(
    partition: i32,
    row: &StoredRow,
    from: i64,
    messages: &mut Vec<Message>,
) -> Result<()> {
    for (offset, record) in (row.base_offset..).zip(row.records()?) {
        let record = record?;
        // Rows are read whole, so the first one may begin before the position. Its earlier records
        // were handed out before.
        if offset >= from {
            messages.push(Message {
                partition,
                offset,
                time_us: record.time_us,
                appended_at_us: row.appended_at_us,
                key: record.key,
                headers: record.headers,
                value: record.value,
            });
        }
    }
    Ok(())
}

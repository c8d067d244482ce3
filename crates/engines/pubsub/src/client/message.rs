//! What a consumer gets.

use bytes::Bytes;

use crate::error::Result;
use crate::fetch::StoredRow;
use crate::record::Headers;

/// One record with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The producer's time, microseconds since 1970.
    pub time_us: i64,
    /// When it was appended, by the server's clock, microseconds since 1970.
    pub appended_at_us: i64,
    /// What decided the partition, where there was one.
    pub key: Option<Bytes>,
    /// Names and values.
    pub headers: Headers,
    /// The payload.
    pub value: Bytes,
}

/// Adds the records of a row from an offset on.
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

//! Reading rows, and finding the offsets to read from.

use bytes::{Buf, Bytes};

use super::message::message;
use super::{Ask, Body, Field, Fields, Rest, WireError};
use crate::start::Start;

message! {
    Fetch,
    /// Asks for the rows from an offset on.
    Fetch {
        /// The number of the topic, from [`super::TopicIs`].
        topic_id: i32,
        /// The number of the partition.
        partition: i32,
        /// The first offset that is wanted; the first row may begin before it.
        offset: i64,
        /// The most bytes of rows, except that the first row always comes.
        most_bytes: u32,
        /// With fewer bytes than this at the end of the log the answer waits for more records.
        least_bytes: u32,
        /// How long the answer waits at most, in milliseconds.
        wait_ms: u32,
    }
}

message! {
    Fetch,
    /// Rows, whole and in order.
    Fetched {
        /// The first offset that is still there.
        first_offset: i64,
        /// The offset that the next record will get.
        next_offset: i64,
        /// Groups of rows, each the number of rows, their headers, their bodies; [`Rows`] reads
        /// them.
        rows: Rest,
    }
}

impl Ask for Fetch {
    type Answer = Fetched;
}

/// The length of a row's header.
pub const ROW_HEADER_BYTES: usize = 48;

/// In the wire's flags of a row: it was written by a server that cannot compute CRC32C.
const NO_CRC: u8 = 0x80;

/// The head of a row, which precedes its body on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowHead {
    /// The offset of its first record.
    pub base_offset: i64,
    /// How many records it holds.
    pub count: u32,
    /// The length of its body.
    pub bytes: u32,
    /// The producers' earliest time, microseconds since 1970.
    pub first_time_us: i64,
    /// The producers' latest time, microseconds since 1970.
    pub last_time_us: i64,
    /// When it was appended, by the database's clock, microseconds since 1970.
    pub appended_at_us: i64,
    /// CRC32C of the body as stored; `None` if the server that wrote the row could not compute it.
    pub crc: Option<u32>,
    /// Bits 0 and 1: 0 no compression, 1 LZ4, 2 zstd.
    pub codec: u8,
}

impl RowHead {
    /// The header's bytes: base offset, producers' times, time of the append, count, length,
    /// checksum, flags, three zeros.
    pub fn encode(&self) -> [u8; ROW_HEADER_BYTES] {
        let mut out = [0; ROW_HEADER_BYTES];
        out[..8].copy_from_slice(&self.base_offset.to_le_bytes());
        out[8..16].copy_from_slice(&self.first_time_us.to_le_bytes());
        out[16..24].copy_from_slice(&self.last_time_us.to_le_bytes());
        out[24..32].copy_from_slice(&self.appended_at_us.to_le_bytes());
        out[32..36].copy_from_slice(&self.count.to_le_bytes());
        out[36..40].copy_from_slice(&self.bytes.to_le_bytes());
        out[40..44].copy_from_slice(&self.crc.unwrap_or(0).to_le_bytes());
        out[44] = self.codec | if self.crc.is_none() { NO_CRC } else { 0 };
        out
    }

    /// Reads a head from bytes that hold a whole one at least.
    fn read(bytes: &mut Bytes) -> RowHead {
        let mut header = bytes.split_to(ROW_HEADER_BYTES);
        let base_offset = header.get_i64_le();
        let first_time_us = header.get_i64_le();
        let last_time_us = header.get_i64_le();
        let appended_at_us = header.get_i64_le();
        let count = header.get_u32_le();
        let length = header.get_u32_le();
        let crc = header.get_u32_le();
        let flags = header.get_u8();
        RowHead {
            base_offset,
            count,
            bytes: length,
            first_time_us,
            last_time_us,
            appended_at_us,
            crc: (flags & NO_CRC == 0).then_some(crc),
            codec: flags & !NO_CRC,
        }
    }
}

/// The rows of an answer, one after the other; each body is shared with the answer.
///
/// Rows come in groups, as they were appended: the number of rows, their heads, their bodies.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The heads of the current group whose rows were not returned yet.
    heads: Bytes,
    rest: Bytes,
}

impl Rows {
    /// Reads the rows of an answer from its first byte on.
    pub fn new(rows: Bytes) -> Rows {
        Rows {
            heads: Bytes::new(),
            rest: rows,
        }
    }

    /// The number in front of a group of this many rows.
    pub fn group(rows: usize) -> [u8; 4] {
        (rows as u32).to_le_bytes()
    }

    fn take_row(&mut self) -> Result<(RowHead, Bytes), WireError> {
        let short = |field| WireError::Short {
            message: "Fetched",
            field,
        };
        if self.heads.is_empty() {
            let rows = self.rest.try_get_u32_le().map_err(|_| short("a group"))?;
            let bytes = (rows as usize).saturating_mul(ROW_HEADER_BYTES);
            // An empty group is refused because the iteration would make no progress on it.
            if rows == 0 || self.rest.len() < bytes {
                return Err(short("the headers of a group"));
            }
            self.heads = self.rest.split_to(bytes);
        }
        let head = RowHead::read(&mut self.heads);
        if self.rest.len() < head.bytes as usize {
            return Err(short("the body of a row"));
        }
        Ok((head, self.rest.split_to(head.bytes as usize)))
    }
}

impl Iterator for Rows {
    type Item = Result<(RowHead, Bytes), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() && self.heads.is_empty() {
            return None;
        }
        let row = self.take_row();
        if row.is_err() {
            *self = Rows::new(Bytes::new());
        }
        Some(row)
    }
}

/// A position in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromWhere {
    /// The first record that is still there.
    Earliest,
    /// Behind the last record, so only later ones are read.
    Latest,
    /// An offset. Beyond the end of the partition it is refused.
    Offset(i64),
    /// The first row that was appended at this time or later, microseconds since 1970.
    TimeUs(i64),
}

impl From<Start> for FromWhere {
    fn from(start: Start) -> FromWhere {
        match start {
            Start::Earliest => FromWhere::Earliest,
            Start::Latest => FromWhere::Latest,
            Start::Offset(offset) => FromWhere::Offset(offset),
            Start::TimeUs(time_us) => FromWhere::TimeUs(time_us),
        }
    }
}

impl From<FromWhere> for Start {
    fn from(place: FromWhere) -> Start {
        match place {
            FromWhere::Earliest => Start::Earliest,
            FromWhere::Latest => Start::Latest,
            FromWhere::Offset(offset) => Start::Offset(offset),
            FromWhere::TimeUs(time_us) => Start::TimeUs(time_us),
        }
    }
}

impl Field for FromWhere {
    const LEAST_BYTES: usize = 9;

    fn write(&self, body: &mut Body) {
        let (kind, value) = match self {
            FromWhere::Earliest => (0_u8, 0),
            FromWhere::Latest => (1, 0),
            FromWhere::Offset(offset) => (2, *offset),
            FromWhere::TimeUs(time_us) => (3, *time_us),
        };
        kind.write(body);
        value.write(body);
    }

    fn read(fields: &mut Fields, field: &'static str) -> Result<FromWhere, WireError> {
        match (u8::read(fields, field)?, i64::read(fields, field)?) {
            (0, _) => Ok(FromWhere::Earliest),
            (1, _) => Ok(FromWhere::Latest),
            (2, offset) => Ok(FromWhere::Offset(offset)),
            (3, time_us) => Ok(FromWhere::TimeUs(time_us)),
            _ => Err(fields.wrong(field, "is not a kind of place")),
        }
    }
}

message! {
    ListOffsets,
    /// Asks for the offset of a position.
    ListOffsets {
        /// The name of the topic.
        topic: String,
        /// The number of the partition.
        partition: i32,
        /// The position whose offset is wanted.
        from: FromWhere,
    }
}

message! {
    ListOffsets,
    /// The offset of the place.
    Offset {
        /// Where reading from that place begins.
        offset: i64,
    }
}

impl Ask for ListOffsets {
    type Answer = Offset;
}

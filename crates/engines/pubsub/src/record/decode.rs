//! Reading records. The bytes may come from anywhere: what is not a record is an error that says
//! where it is.

use bytes::{Buf, Bytes};

use super::{RECORD_BYTES_LEAST, RECORD_BYTES_MAX};
use crate::error::{Code, Error, Result};

/// One record. Key, headers and value share the body's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The producer's time, microseconds since 1970.
    pub time_us: i64,
    /// The key, which decides the partition; `None` if the producer gave none.
    pub key: Option<Bytes>,
    /// Names and values, in the order in which the producer gave them.
    pub headers: Headers,
    /// What the producer sent.
    pub value: Bytes,
}

/// A record's headers in order; names may repeat.
pub type Headers = Vec<(String, Option<Bytes>)>;

/// The records of a body, in order. It ends after an error, because the next record cannot be
/// found.
#[derive(Debug, Clone)]
pub struct Records {
    rest: Bytes,
    total_bytes: usize,
}

impl Records {
    /// Begins at the first record of an uncompressed body.
    pub fn new(body: Bytes) -> Self {
        let total_bytes = body.len();
        Self {
            rest: body,
            total_bytes,
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        if self.rest.is_empty() {
            return None;
        }
        let at = self.total_bytes - self.rest.len();
        let record = take_record(&mut self.rest);
        if record.is_none() {
            self.rest.clear();
        }
        Some(record.ok_or_else(|| damaged(at, self.total_bytes)))
    }
}

/// The length of each record of an uncompressed body, its length field included, and its time. It
/// ends after an error. This is for code that cuts bodies and does not need the records.
pub fn lengths(body: &[u8]) -> impl Iterator<Item = Result<(usize, i64)>> + '_ {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((bytes, time_us)) = measure(rest) else {
            let at = body.len() - rest.len();
            rest = &[];
            return Some(Err(damaged(at, body.len())));
        };
        rest = &rest[bytes..];
        Some(Ok((bytes, time_us)))
    })
}

fn measure(rest: &[u8]) -> Option<(usize, i64)> {
    let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
    let length = usize::try_from(length).ok()?;
    if !(RECORD_BYTES_LEAST..=RECORD_BYTES_MAX).contains(&length) || rest.len() - 4 < length {
        return None;
    }
    Some((
        4 + length,
        i64::from_be_bytes(rest.get(4..12)?.try_into().ok()?),
    ))
}

fn take_record(rest: &mut Bytes) -> Option<Record> {
    let (bytes, time_us) = measure(rest)?;
    let mut record = rest.split_to(bytes);
    record.advance(12);
    let key = take_optional(&mut record)?;
    if record.len() < 2 {
        return None;
    }
    let header_count = record.get_u16();
    // The count comes from the bytes. A header takes six of them at least, so no more headers are
    // reserved than can be there.
    let mut headers = Vec::with_capacity(usize::from(header_count).min(record.len() / 6));
    for _ in 0..header_count {
        if record.len() < 2 {
            return None;
        }
        let name_bytes = usize::from(record.get_u16());
        if record.len() < name_bytes {
            return None;
        }
        let name = String::from_utf8(record.split_to(name_bytes).to_vec()).ok()?;
        headers.push((name, take_optional(&mut record)?));
    }
    Some(Record {
        time_us,
        key,
        headers,
        value: record,
    })
}

/// Reads a length and that many bytes, or `Some(None)` for the length -1. The outer `None` means
/// that bytes are missing.
fn take_optional(record: &mut Bytes) -> Option<Option<Bytes>> {
    if record.len() < 4 {
        return None;
    }
    let length = record.get_i32();
    if length == -1 {
        return Some(None);
    }
    let length = usize::try_from(length).ok()?;
    (record.len() >= length).then(|| Some(record.split_to(length)))
}

fn damaged(at: usize, total: usize) -> Error {
    Error::new(
        Code::Damaged,
        format_args!("byte {at} of a body of {total} bytes begins no whole record"),
    )
}

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

/// One record in place. Its parts lie in the body, so that looking at it copies nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// The producer's time, microseconds since 1970.
    pub time_us: i64,
    /// The key, which decides the partition; `None` if the producer gave none.
    pub key: Option<&'a [u8]>,
    /// How many headers there are.
    pub header_count: u16,
    headers: &'a [u8],
    /// What the producer sent.
    pub value: &'a [u8],
}

impl<'a> RecordView<'a> {
    /// Names and values of the headers, in the order in which the producer gave them. Names are
    /// UTF-8 unless the body is damaged.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let mut rest = self.headers;
        std::iter::from_fn(move || take_header(&mut rest))
    }

    /// Reads the record at the beginning of `rest`, and how many bytes it has.
    fn read(rest: &'a [u8]) -> Option<(RecordView<'a>, usize)> {
        let (bytes, time_us) = measure(rest)?;
        let mut record = &rest[12..bytes];
        let key = take_optional(&mut record)?;
        let header_count = record.try_get_u16().ok()?;
        let mut behind = record;
        for _ in 0..header_count {
            take_header(&mut behind)?;
        }
        let view = RecordView {
            time_us,
            key,
            header_count,
            headers: &record[..record.len() - behind.len()],
            value: behind,
        };
        Some((view, bytes))
    }
}

/// The records of an uncompressed body, in order and in place. It ends after an error, because the
/// next record cannot be found.
pub fn views(body: &[u8]) -> impl Iterator<Item = Result<RecordView<'_>>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = body.len() - rest.len();
        let Some((view, bytes)) = RecordView::read(rest) else {
            rest = &[];
            return Some(Err(damaged(at, body.len())));
        };
        rest = &rest[bytes..];
        Some(Ok(view))
    })
}

fn take_record(rest: &mut Bytes) -> Option<Record> {
    let (view, bytes) = RecordView::read(rest)?;
    let shared = |part: &[u8]| rest.slice_ref(part);
    let headers = view.headers().map(|(name, value)| {
        let name = std::str::from_utf8(name).ok()?;
        Some((name.to_owned(), value.map(shared)))
    });
    let record = Record {
        time_us: view.time_us,
        key: view.key.map(shared),
        headers: headers.collect::<Option<_>>()?,
        value: shared(view.value),
    };
    rest.advance(bytes);
    Some(record)
}

fn take_header<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let name_bytes = rest.try_get_u16().ok()?;
    let name = rest.split_off(..usize::from(name_bytes))?;
    Some((name, take_optional(rest)?))
}

/// Reads a length and that many bytes, or `Some(None)` for the length -1. The outer `None` means
/// that bytes are missing.
fn take_optional<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = rest.try_get_i32().ok()?;
    if length == -1 {
        return Some(None);
    }
    let length = usize::try_from(length).ok()?;
    rest.split_off(..length).map(Some)
}

fn damaged(at: usize, total: usize) -> Error {
    Error::new(
        Code::Damaged,
        format_args!("byte {at} of a body of {total} bytes begins no whole record"),
    )
}

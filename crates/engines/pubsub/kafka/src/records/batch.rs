//! Batches to records of the log, and back.
//!
//! A record of the log has everything that a record of Kafka has but one thing: its value cannot be
//! null. A record with a null value ("tombstone") becomes one with an empty value and the header
//! [`NULL_VALUE`], and is a null value again for Kafka's clients.

use std::io;

use bytes::{Buf, BufMut, Bytes};
use dyno_pubsub::record::{RecordView, encode};

use super::compression::Compression;
use super::varint;

/// The name of the header that stands for a null value.
const NULL_VALUE: &str = "kafka.null-value";

/// The bytes in front of a batch's first record.
const HEAD_BYTES: usize = 61;
/// The bytes that the length of a batch does not count: its offset and the length itself.
const UNCOUNTED_BYTES: usize = 12;
/// The checksum covers a batch from here on.
const CHECKED_FROM: usize = 21;
const MAGIC: i8 = 2;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
/// Set in a header or key length that stands for null.
const NULL: i64 = -1;
const MICROS: i64 = 1_000;
/// The most headers of a record, whose number has 16 bits in the log.
const MOST_HEADERS: usize = 65_535;

/// What a batch says of itself before its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchHead {
    attributes: i16,
    /// Whether the batch is part of a transaction.
    pub is_transactional: bool,
    /// How many records follow.
    pub count: u32,
    base_timestamp_ms: i64,
    /// The producer's id; below 0 for a producer that is not idempotent.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The sequence of the first record.
    pub base_sequence: i32,
}

/// Why a batch is refused.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The bytes are not a batch of this version, or their checksum is wrong.
    #[error("the batch is damaged: {0}")]
    Damaged(&'static str),
    /// The batch is whole, and something in it is not taken here.
    #[error("the batch is refused: {0}")]
    Refused(String),
    /// The batch or one of its records is longer than the log takes.
    #[error("the batch becomes longer than {most_bytes} bytes")]
    TooLong {
        /// The bound.
        most_bytes: usize,
    },
    /// The batch has an earlier version of the format.
    #[error("the batch has version {0} of the format, and version 2 is taken")]
    Version(i8),
}

/// Reads the head of the only batch in `bytes`, checks its checksum, and returns it with its
/// records, which may be compressed.
///
/// # Errors
/// [`RecordsError`]; also for bytes behind the batch, because a request holds one batch for each
/// partition.
pub fn read_head(mut bytes: Bytes) -> Result<(BatchHead, Bytes), RecordsError> {
    let damaged = RecordsError::Damaged;
    if bytes.len() < HEAD_BYTES {
        return Err(damaged("it ends within its head"));
    }
    let whole = bytes.clone();
    // A producer does not know the offset, and the leader's epoch is not under the checksum, so
    // neither is looked at.
    let _base_offset = bytes.get_i64();
    let length = bytes.get_i32();
    let _leader_epoch = bytes.get_i32();
    let magic = bytes.get_i8();
    if magic != MAGIC {
        return Err(RecordsError::Version(magic));
    }
    if usize::try_from(length).ok() != Some(whole.len() - UNCOUNTED_BYTES) {
        return Err(damaged("its length is not that of the request's bytes"));
    }
    if bytes.get_u32() != dyno_checksum::crc32c(&whole[CHECKED_FROM..]) {
        return Err(damaged("its checksum is wrong"));
    }
    let attributes = bytes.get_i16();
    let last_offset_delta = bytes.get_i32();
    let base_timestamp_ms = bytes.get_i64();
    let _max_timestamp_ms = bytes.get_i64();
    let head = BatchHead {
        attributes,
        is_transactional: attributes & TRANSACTIONAL != 0,
        base_timestamp_ms,
        producer_id: bytes.get_i64(),
        producer_epoch: bytes.get_i16(),
        base_sequence: bytes.get_i32(),
        count: u32::try_from(bytes.get_i32()).map_err(|_| damaged("its count is negative"))?,
    };
    if attributes & CONTROL != 0 {
        let text = "only a broker writes control batches".to_owned();
        return Err(RecordsError::Refused(text));
    }
    if head.count == 0 || i64::from(last_offset_delta) != i64::from(head.count) - 1 {
        return Err(damaged("its last offset does not fit its count"));
    }
    Ok((head, bytes))
}

/// Writes the records of a batch as a body of the log.
///
/// # Errors
/// [`RecordsError`]. `most_bytes` bounds what the records become, in either form.
pub fn from_batch(
    head: &BatchHead,
    packed: Bytes,
    now_ms: i64,
    most_bytes: usize,
) -> Result<Vec<u8>, RecordsError> {
    let compression = Compression::from_attributes(head.attributes)
        .ok_or(RecordsError::Damaged("its compression is unknown"))?;
    let raw = compression.decompress(packed, most_bytes);
    let mut rest = raw.map_err(|error| match error.kind() {
        io::ErrorKind::OutOfMemory => RecordsError::TooLong { most_bytes },
        _ => RecordsError::Damaged("it cannot be decompressed"),
    })?;
    let mut body = Vec::with_capacity(rest.len().min(most_bytes));
    for index in 0..head.count {
        let record = read_record(&mut rest, head, index)
            .ok_or(RecordsError::Damaged("a record is not whole"))??;
        append(&mut body, &record, now_ms)?;
        if body.len() > most_bytes {
            return Err(RecordsError::TooLong { most_bytes });
        }
    }
    if rest.is_empty() {
        Ok(body)
    } else {
        Err(RecordsError::Damaged("bytes are left behind its records"))
    }
}

/// A record as Kafka has it. The parts share the batch's memory.
struct KafkaRecord {
    time_ms: i64,
    key: Option<Bytes>,
    value: Option<Bytes>,
    headers: Vec<(Bytes, Option<Bytes>)>,
}

/// Reads one record; the outer `None` means that bytes are missing.
fn read_record(
    rest: &mut Bytes,
    head: &BatchHead,
    index: u32,
) -> Option<Result<KafkaRecord, RecordsError>> {
    let length = usize::try_from(varint::read(rest)?).ok()?;
    if length > rest.len() {
        return None;
    }
    let mut record = rest.split_to(length);
    let _attributes = record.try_get_i8().ok()?;
    let time_delta_ms = varint::read(&mut record)?;
    // Offsets count up by one: a gap would be an offset that no record has.
    if varint::read(&mut record)? != i64::from(index) {
        let text = format!("record {index} does not have the next offset");
        return Some(Err(RecordsError::Refused(text)));
    }
    let key = read_bytes(&mut record)?;
    let value = read_bytes(&mut record)?;
    let header_count = usize::try_from(varint::read(&mut record)?).ok()?;
    // Refused before any is kept: a header of two bytes takes many times that in memory.
    if header_count > MOST_HEADERS {
        let text = format!("record {index} has more than {MOST_HEADERS} headers");
        return Some(Err(RecordsError::Refused(text)));
    }
    // A header takes two bytes at least, so nothing is reserved for more than can be there.
    let mut headers = Vec::with_capacity(header_count.min(record.len() / 2));
    for _ in 0..header_count {
        headers.push((read_bytes(&mut record)??, read_bytes(&mut record)?));
    }
    record.is_empty().then_some(Ok(KafkaRecord {
        time_ms: head.base_timestamp_ms.saturating_add(time_delta_ms),
        key,
        value,
        headers,
    }))
}

/// Reads a length and that many bytes; the outer `None` means that bytes are missing.
fn read_bytes(record: &mut Bytes) -> Option<Option<Bytes>> {
    let length = varint::read(record)?;
    if length == NULL {
        return Some(None);
    }
    let length = usize::try_from(length).ok()?;
    (length <= record.len()).then(|| Some(record.split_to(length)))
}

fn append(body: &mut Vec<u8>, record: &KafkaRecord, now_ms: i64) -> Result<(), RecordsError> {
    let mut headers = Vec::with_capacity(record.headers.len() + 1);
    for (name, value) in &record.headers {
        let name = std::str::from_utf8(name)
            .map_err(|_| RecordsError::Refused("a header's name is not UTF-8".to_owned()))?;
        headers.push((name, value.as_deref()));
    }
    if record.value.is_none() {
        // The last header, because `write_record` looks only there: a client may send a header of
        // this name, too, and gets it back as it was beside a value.
        headers.push((NULL_VALUE, None));
    }
    // A client that knows no time says -1.
    let time_ms = if record.time_ms == -1 {
        now_ms
    } else {
        record.time_ms
    };
    let value = record.value.as_deref().unwrap_or_default();
    let time_us = time_ms.saturating_mul(MICROS);
    let key = record.key.as_deref();
    encode(body, time_us, key, &headers, value).map_err(|error| match error.code() {
        "record-too-large" => RecordsError::TooLong {
            most_bytes: dyno_pubsub::record::RECORD_BYTES_MAX,
        },
        _ => RecordsError::Refused(error.text().to_owned()),
    })
}

/// Writes records with consecutive offsets as one batch without compression, each of them once.
#[derive(Debug, Default)]
pub struct BatchWriter {
    bytes: Vec<u8>,
    base_ms: i64,
    latest_ms: i64,
    count: i32,
}

impl BatchWriter {
    /// A batch of records that take so many bytes in bodies of the log, where they take more than
    /// in a batch unless they are very small.
    pub fn with_body_bytes(body_bytes: usize) -> BatchWriter {
        BatchWriter {
            bytes: Vec::with_capacity(HEAD_BYTES + body_bytes),
            ..BatchWriter::default()
        }
    }

    /// How many bytes were written so far.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a record. The offset of the first one is the batch's.
    pub fn push(&mut self, offset: i64, record: &RecordView<'_>) {
        let time_ms = record.time_us.div_euclid(MICROS);
        if self.count == 0 {
            self.begin(offset, time_ms);
        }
        write_record(
            &mut self.bytes,
            self.count.into(),
            time_ms - self.base_ms,
            record,
        );
        self.latest_ms = self.latest_ms.max(time_ms);
        self.count += 1;
    }

    /// The head, in which [`Self::finish`] replaces what depends on all records.
    fn begin(&mut self, offset: i64, time_ms: i64) {
        (self.base_ms, self.latest_ms) = (time_ms, time_ms);
        let bytes = &mut self.bytes;
        bytes.put_i64(offset);
        bytes.put_i32(0);
        // The epoch of the leader is unknown to clients, who then do not check it.
        bytes.put_i32(-1);
        bytes.put_i8(MAGIC);
        bytes.put_u32(0);
        bytes.put_i16(0);
        bytes.put_i32(0);
        bytes.put_i64(time_ms);
        bytes.put_i64(time_ms);
        // No producer: a row has the records of several, with sequences that are the log's and not
        // those that the clients counted.
        bytes.put_i64(-1);
        bytes.put_i16(-1);
        bytes.put_i32(-1);
        bytes.put_i32(0);
    }

    /// The whole batch; nothing if it has no record.
    pub fn finish(mut self) -> Bytes {
        if self.count == 0 {
            return Bytes::new();
        }
        let length = (self.bytes.len() - UNCOUNTED_BYTES) as i32;
        let mut replace = |at: usize, bytes: &[u8]| {
            self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        };
        replace(8, &length.to_be_bytes());
        replace(23, &(self.count - 1).to_be_bytes());
        replace(35, &self.latest_ms.to_be_bytes());
        replace(57, &self.count.to_be_bytes());
        let crc = dyno_checksum::crc32c(&self.bytes[CHECKED_FROM..]);
        self.bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        self.bytes.into()
    }
}

fn write_record(bytes: &mut Vec<u8>, index: i64, time_delta: i64, record: &RecordView<'_>) {
    let is_null = record.value.is_empty()
        && (record.headers().last())
            .is_some_and(|(name, value)| name == NULL_VALUE.as_bytes() && value.is_none());
    let header_count = usize::from(record.header_count) - usize::from(is_null);
    let headers = || record.headers().take(header_count);
    let value = (!is_null).then_some(record.value);
    let length = 1
        + varint::length(time_delta)
        + varint::length(index)
        + optional_length(record.key)
        + optional_length(value)
        + varint::length(header_count as i64)
        + headers()
            .map(|(name, value)| optional_length(Some(name)) + optional_length(value))
            .sum::<usize>();
    varint::write(bytes, length as i64);
    bytes.put_i8(0);
    varint::write(bytes, time_delta);
    varint::write(bytes, index);
    write_optional(bytes, record.key);
    write_optional(bytes, value);
    varint::write(bytes, header_count as i64);
    for (name, value) in headers() {
        write_optional(bytes, Some(name));
        write_optional(bytes, value);
    }
}

fn optional_length(value: Option<&[u8]>) -> usize {
    match value {
        Some(value) => varint::length(value.len() as i64) + value.len(),
        None => varint::length(NULL),
    }
}

fn write_optional(bytes: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            varint::write(bytes, value.len() as i64);
            bytes.put_slice(value);
        }
        None => varint::write(bytes, NULL),
    }
}

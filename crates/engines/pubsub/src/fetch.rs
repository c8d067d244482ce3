//! Reading rows of a partition, in order, with a bound on bytes.
//!
//! Rows are read from the table of their range and not from its parent: one table to lock and a
//! plan that never has to be made again. A row that reaches over the end of its range is found by
//! looking back.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use dyno_postgres::postgres::{Client, Row, Statement};

use crate::error::{Code, Error, Result};
use crate::record::{Codec, ROW_RECORDS_MAX, Records, decompress};
use crate::topic::TopicPartition;
use crate::wire;

/// A row of the log, which holds records of consecutive offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRow {
    /// The offset of its first record.
    pub base_offset: i64,
    /// How many records it holds; at least one.
    pub count: i32,
    /// The earliest of the producers' times, microseconds since 1970.
    pub first_time_us: i64,
    /// The latest of the producers' times, microseconds since 1970.
    pub last_time_us: i64,
    /// When it was appended, by the server's clock, microseconds since 1970. Grows with the offset.
    pub appended_at_us: i64,
    /// The number of the codec, see [`Codec::flags`].
    pub flags: i16,
    /// CRC32C of the body as stored; `None`: SQL functions wrote it on a server that cannot compute
    /// one.
    pub crc: Option<u32>,
    /// The records as they are stored: compressed by the codec, each with its length in front.
    pub body: Bytes,
}

impl StoredRow {
    /// Verifies the checksum, decompresses the body, and returns its records.
    ///
    /// # Errors
    /// `damaged`, with the offset.
    pub fn records(&self) -> Result<Records> {
        self.uncompressed().map(Records::new)
    }

    /// The same as one body, of which [`crate::record::views`] shows the records in place.
    ///
    /// # Errors
    /// `damaged`, with the offset.
    pub fn uncompressed(&self) -> Result<Bytes> {
        let at = self.base_offset;
        if let Some(crc) = self.crc {
            let found = dyno_checksum::crc32c(&self.body);
            if found != crc {
                let text =
                    format_args!("the row at offset {at} has checksum {found:08x}, not {crc:08x}");
                return Err(Error::new(Code::Damaged, text));
            }
        }
        decompress(Codec::from_flags(self.flags)?, self.body.clone()).map_err(|e| {
            Error::new(
                Code::Damaged,
                format_args!("the row at offset {at}: {}", e.text()),
            )
        })
    }
}

impl wire::Fetched {
    /// The rows of a broker's answer, in order. Their bodies share its memory.
    ///
    /// # Errors
    /// `damaged` in place of the first one that is not a row, and nothing behind it.
    pub fn stored_rows(&self) -> impl Iterator<Item = Result<StoredRow>> + use<> {
        wire::Rows::new(self.rows.bytes()).map(|row| {
            let (head, body) = row.map_err(|error| Error::new(Code::Damaged, error))?;
            Ok(StoredRow {
                base_offset: head.base_offset,
                count: i32::try_from(head.count).unwrap_or(i32::MAX),
                first_time_us: head.first_time_us,
                last_time_us: head.last_time_us,
                appended_at_us: head.appended_at_us,
                flags: i16::from(head.codec),
                crc: head.crc,
                body,
            })
        })
    }
}

/// What one fetch has read of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Whole rows, in order and without gaps; the first may begin before the offset that was asked
    /// for.
    pub rows: Vec<StoredRow>,
    /// The offset to fetch from next.
    pub next_offset: i64,
}

/// The prepared statements of one connection, and where its last fetches ended.
#[derive(Default)]
pub(crate) struct Fetches {
    readers: HashMap<TopicPartition, PartitionReader>,
    /// Reads where a range ends.
    ends: Option<Statement>,
}

const RANGE_END: &str = "SELECT end_offset FROM pubsub.ranges \
                         WHERE topic_id = $1 AND partition = $2 AND first_offset = $3";

/// What is known of a partition that was read before.
struct PartitionReader {
    range: Range,
    /// Reads rows that fit a page.
    pages: Statement,
    /// Reads rows of any length; prepared when the first long one comes, and used while they are.
    any: Option<Statement>,
    /// The offset to read from next. It is the first offset of a row, or the end of the log.
    row_starts_at: i64,
    /// The mean length of the rows of the last fetch, by which the next one guesses how many rows
    /// to ask for.
    mean_row_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Range {
    first_offset: i64,
    end_offset: i64,
}

/// The most rows of one fetch, whatever their size.
const ROWS_MAX: usize = 8192;
/// A longer body lies outside its row's page, and is read by a statement that counts bytes first.
const IN_PAGE_BYTES: usize = 8192;
/// Rows may have become longer since the last fetch. Then up to this many times the bound is read,
/// and what is beyond the bound is dropped.
const BEYOND: usize = 4;

impl Fetches {
    pub(crate) fn fetch(
        &mut self,
        client: &mut Client,
        key: TopicPartition,
        offset: i64,
        most_bytes: usize,
    ) -> Result<Fetched> {
        let known = self.readers.get(&key);
        // Only where the last fetch ended is it known that a row begins. From any other offset the
        // row that holds it has to be found first, because the statement reads rows by their first
        // offset.
        let sequential = known.is_some_and(|known| {
            known.row_starts_at == offset
                && (known.range.first_offset..known.range.end_offset).contains(&offset)
        });
        if !sequential {
            let from = row_holding(client, key, offset)?;
            self.open_range(client, key, from)?;
        }
        let mut done = self.read(client, key, offset, most_bytes);
        // Nothing was found. Either this is the end of the log, or the range was ended early after
        // it was opened here, and the records go on in the next range. A reader that took the
        // second for the first would wait for ever.
        if let Ok(fetched) = &done
            && fetched.rows.is_empty()
            && self.has_ended_early(client, key)?
        {
            self.open_range(client, key, offset)?;
            done = self.read(client, key, offset, most_bytes);
        }
        match done {
            Err(error) if error.is_gone() => {
                // Retention dropped the range between two fetches. If its records were wanted,
                // `row_holding` says that they are out of range. Otherwise the offset is the end of
                // the range, where the next one begins, and the read goes on there.
                self.readers.remove(&key);
                let from = row_holding(client, key, offset)?;
                self.open_range(client, key, from)?;
                self.read(client, key, offset, most_bytes)
                    .map_err(|error| error.error)
            }
            done => done.map_err(|error| error.error),
        }
    }

    /// Whether the open range ends before the offset that is read next. If so, the range is
    /// forgotten.
    fn has_ended_early(&mut self, client: &mut Client, key: TopicPartition) -> Result<bool> {
        let Some(known) = self.readers.get(&key) else {
            return Ok(false);
        };
        let TopicPartition {
            topic_id,
            partition,
        } = key;
        let ends = match &self.ends {
            Some(ends) => ends,
            None => self
                .ends
                .insert(client.prepare(RANGE_END).map_err(failed(key))?),
        };
        let row = client
            .query_opt(ends, &[&topic_id, &partition, &known.range.first_offset])
            .map_err(failed(key))?;
        let ended = row.is_some_and(|row| row.get::<_, i64>(0) <= known.row_starts_at);
        if ended {
            self.readers.remove(&key);
        }
        Ok(ended)
    }

    /// Prepares to read the range that an offset lies in, from that offset on.
    fn open_range(&mut self, client: &mut Client, key: TopicPartition, from: i64) -> Result<()> {
        let TopicPartition {
            topic_id,
            partition,
        } = key;
        if let Some(known) = self.readers.get_mut(&key)
            && (known.range.first_offset..known.range.end_offset).contains(&from)
        {
            known.row_starts_at = from;
            return Ok(());
        }
        let row = client
            .query_opt(
                "SELECT first_offset, end_offset FROM pubsub.ranges WHERE topic_id = $1 AND partition = $2 \
                 AND first_offset <= $3 AND end_offset > $3",
                &[&topic_id, &partition, &from],
            )
            .map_err(failed(key))?
            .ok_or_else(|| out_of_range(key, from, "no range holds it"))?;
        let range = Range {
            first_offset: row.get(0),
            end_offset: row.get(1),
        };
        let pages = client
            .prepare(&query_pages(key, range))
            .map_err(failed(key))?;
        let mean_row_bytes = self
            .readers
            .get(&key)
            .map_or(8192, |known| known.mean_row_bytes);
        let known = PartitionReader {
            range,
            pages,
            any: None,
            row_starts_at: from,
            mean_row_bytes,
        };
        self.readers.insert(key, known);
        Ok(())
    }

    fn read(
        &mut self,
        client: &mut Client,
        key: TopicPartition,
        offset: i64,
        most_bytes: usize,
    ) -> std::result::Result<Fetched, ReadError> {
        let Some(known) = self.readers.get_mut(&key) else {
            return Err(out_of_range(key, offset, "no range is open").into());
        };
        let pages = if known.mean_row_bytes <= IN_PAGE_BYTES {
            known.read_pages(client, key, most_bytes)?
        } else {
            None
        };
        let rows = match pages {
            Some(rows) => rows,
            None => known.read_any(client, key, most_bytes)?,
        };
        let mut next_offset = known.row_starts_at;
        for row in &rows {
            // A gap or an overlap means that rows were lost or written twice. Offsets are given to
            // records by counting from here, so a reader that went on would hand out wrong ones.
            if row.base_offset != next_offset {
                let text = format_args!(
                    "{key}: a row begins at offset {}, not at {next_offset}",
                    row.base_offset
                );
                return Err(Error::new(Code::Damaged, text).into());
            }
            next_offset += i64::from(row.count);
        }
        if !rows.is_empty() {
            let bytes: usize = rows.iter().map(|row| row.body.len()).sum();
            known.mean_row_bytes = (bytes / rows.len()).max(1);
        }
        known.row_starts_at = next_offset;
        Ok(Fetched { rows, next_offset })
    }
}

impl PartitionReader {
    /// Reads rows that fit a page, with one look at each. Returns `None` if the next row does not
    /// fit a page.
    fn read_pages(
        &mut self,
        client: &mut Client,
        key: TopicPartition,
        most_bytes: usize,
    ) -> std::result::Result<Option<Vec<StoredRow>>, ReadError> {
        // The guess by the mean may be far off when rows become longer. The limit by pages bounds
        // what one statement can bring to a few times `most_bytes`.
        let pages = most_bytes / IN_PAGE_BYTES + 1;
        let wanted = most_bytes / self.mean_row_bytes.max(1) + 2;
        let rows_limit = wanted.min(BEYOND * pages).min(ROWS_MAX) as i64;
        let found = client
            .query(&self.pages, &[&self.row_starts_at, &rows_limit])
            .map_err(|error| ReadError::from_database(error, key))?;
        let mut rows = Vec::with_capacity(found.len());
        let mut bytes = 0;
        for row in found {
            let length = row.get::<_, Option<&[u8]>>(BODY).map(<[u8]>::len);
            bytes += length.unwrap_or(0);
            match length {
                None if rows.is_empty() => return Ok(None),
                Some(_) if rows.is_empty() || bytes <= most_bytes => rows.push(stored(row)),
                _ => break,
            }
        }
        Ok(Some(rows))
    }

    /// Reads rows of any length, with a statement that adds up their bytes before it touches a
    /// body.
    fn read_any(
        &mut self,
        client: &mut Client,
        key: TopicPartition,
        most_bytes: usize,
    ) -> std::result::Result<Vec<StoredRow>, ReadError> {
        let statement = match &self.any {
            Some(statement) => statement,
            None => {
                let made = client.prepare(&query_any(key, self.range));
                self.any
                    .insert(made.map_err(|error| ReadError::from_database(error, key))?)
            }
        };
        let rows_limit = (most_bytes / self.mean_row_bytes.max(1) + 2).min(ROWS_MAX) as i64;
        let bytes_limit = i64::try_from(most_bytes).unwrap_or(i64::MAX);
        let found = client
            .query(statement, &[&self.row_starts_at, &bytes_limit, &rows_limit])
            .map_err(|error| ReadError::from_database(error, key))?;
        Ok(found.into_iter().map(stored).collect())
    }
}

fn table(key: TopicPartition, range: Range) -> String {
    let TopicPartition {
        topic_id,
        partition,
    } = key;
    format!("pubsub.log_{topic_id}_{partition}_{}", range.first_offset)
}

/// The first row always comes, the others while the sum of their bytes is within the bound. The sum
/// is made over the narrow columns, so no body is touched that is not sent. The outer limit takes
/// no row away. It tells the planner that few rows are wanted in the order of the index; without it
/// the planner may sort, which copies their bodies.
fn query_any(key: TopicPartition, range: Range) -> String {
    let table = table(key, range);
    format!(
        "SELECT {HEAD}, body FROM {table} \
          WHERE base_offset >= $1 AND base_offset <= ( \
            SELECT max(s.base_offset) FROM ( \
              SELECT base_offset, bytes, sum(bytes) OVER (ORDER BY base_offset ROWS UNBOUNDED PRECEDING) AS upto \
                FROM {table} WHERE base_offset >= $1 ORDER BY base_offset LIMIT $3) AS s \
             WHERE s.upto <= $2 OR s.upto = s.bytes) \
          ORDER BY base_offset LIMIT $3"
    )
}

/// Looks at each row once, where [`query_any`] looks twice and adds up. A row that is longer than a
/// page comes without its body, so what is read is bounded by the number of rows.
fn query_pages(key: TopicPartition, range: Range) -> String {
    let table = table(key, range);
    format!(
        "SELECT {HEAD}, CASE WHEN bytes <= {IN_PAGE_BYTES} THEN body END FROM {table} \
          WHERE base_offset >= $1 ORDER BY base_offset LIMIT $2"
    )
}

/// The column of the body, after those of [`HEAD`].
const BODY: usize = 7;
/// The columns that [`stored`] reads before the body.
const HEAD: &str = "base_offset, count, first_time, last_time, appended_at, flags, crc";

/// The first offset of a partition, and the offset that its next record gets; `None` without such a
/// partition.
pub(crate) fn ends(client: &mut Client, key: TopicPartition) -> Result<Option<(i64, i64)>> {
    let row = client.query_opt(
        "SELECT first_offset, next_offset FROM pubsub.partitions WHERE topic_id = $1 AND partition = $2",
        &[&key.topic_id, &key.partition],
    );
    let row = row.map_err(failed(key))?;
    Ok(row.map(|row| (row.get(0), row.get(1))))
}

/// The first offset of the row that holds an offset, or the offset itself at the end of the log.
fn row_holding(client: &mut Client, key: TopicPartition, offset: i64) -> Result<i64> {
    let TopicPartition {
        topic_id,
        partition,
    } = key;
    let (first, next) = ends(client, key)?.ok_or_else(|| {
        let text = format_args!("there is no topic {topic_id} with partition {partition}");
        Error::new(Code::UnknownTopic, text)
    })?;
    if offset < first || offset > next {
        return Err(out_of_range(
            key,
            offset,
            format_args!("offsets {first} to {next} are there"),
        ));
    }
    if offset == next {
        return Ok(offset);
    }
    let query = format!(
        "SELECT base_offset FROM pubsub.log_{topic_id}_{partition} \
          WHERE base_offset <= $1 AND base_offset >= $1 - {ROW_RECORDS_MAX} ORDER BY base_offset DESC LIMIT 1"
    );
    let row = client.query_opt(&query, &[&offset]).map_err(failed(key))?;
    row.map(|row| row.get(0))
        .ok_or_else(|| out_of_range(key, offset, "no row holds it"))
}

/// Turns a row of the driver into ours. The body keeps the driver's row alive instead of being
/// copied.
fn stored(row: Row) -> StoredRow {
    struct Body(Row);
    impl AsRef<[u8]> for Body {
        fn as_ref(&self) -> &[u8] {
            self.0.get(BODY)
        }
    }
    let crc: Option<i32> = row.get(6);
    StoredRow {
        base_offset: row.get(0),
        count: row.get(1),
        first_time_us: row.get(2),
        last_time_us: row.get(3),
        appended_at_us: micros(row.get(4)),
        flags: row.get(5),
        crc: crc.map(i32::cast_unsigned),
        body: Bytes::from_owner(Body(row)),
    }
}

/// A time in microseconds since 1970; negative before.
pub(crate) fn micros(time: SystemTime) -> i64 {
    let of = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => of(after),
        Err(before) => -of(before.duration()),
    }
}

fn failed(key: TopicPartition) -> impl FnOnce(dyno_postgres::postgres::Error) -> Error {
    Error::statement(format!("read {key}"))
}

fn out_of_range(key: TopicPartition, offset: i64, reason: impl std::fmt::Display) -> Error {
    let text = format_args!("offset {offset} of {key} cannot be read: {reason}");
    Error::new(Code::OffsetOutOfRange, text)
}

/// An error of a read, and whether it says that the table is gone.
struct ReadError {
    error: Error,
    gone: bool,
}

impl ReadError {
    fn from_database(error: dyno_postgres::postgres::Error, key: TopicPartition) -> Self {
        // 42P01: unknown table; XX000: its number, when it went between planning and opening.
        let state = error.code().map(|state| state.code());
        let gone = matches!(state, Some("42P01" | "XX000"));
        Self {
            error: failed(key)(error),
            gone,
        }
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self { error, gone: false }
    }
}

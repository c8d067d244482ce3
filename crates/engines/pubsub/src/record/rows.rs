//! Cutting bodies into rows that fill a page, and keeping for each row which producers' records are
//! in it.

use super::{Codec, PAGE_BODY_BYTES, RAW_BODY_BYTES_MAX, RUN_BYTES, compress, decompress, lengths};
use crate::error::{Code, Error, Result};

/// The most records of a row. Readers look back this far for the row that holds an offset.
pub const ROW_RECORDS_MAX: usize = 65_535;

/// The largest batch in bytes; the server refuses messages of 1 GiB.
pub const BATCH_BYTES_MAX: usize = 512 << 20;

/// A producer's records with consecutive sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The producer's id. With 0 the server does not recognise repetitions.
    pub producer_id: i64,
    /// The sequence of the first record.
    pub first_sequence: i64,
}

/// What one append brings to one partition: records joined to rows, in the order of the columns
/// that the append function takes.
///
/// All runs of one producer have to be pushed one after the other, with consecutive sequences.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) producers: Vec<i64>,
    pub(crate) first_sequences: Vec<i64>,
    pub(crate) last_sequences: Vec<i64>,
    pub(crate) relatives: Vec<i64>,
    pub(crate) row_relatives: Vec<i64>,
    pub(crate) counts: Vec<i32>,
    pub(crate) first_times: Vec<i64>,
    pub(crate) last_times: Vec<i64>,
    pub(crate) run_from: Vec<i32>,
    pub(crate) run_to: Vec<i32>,
    pub(crate) run_values: Vec<i64>,
    pub(crate) flags: Vec<i16>,
    pub(crate) crcs: Vec<i32>,
    pub(crate) body_ends: Vec<i32>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
    records: i64,
    /// Whether the last row may take more records.
    open: bool,
}

impl Batch {
    /// A batch without a record, which cannot be appended.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many records were pushed.
    pub fn records(&self) -> i64 {
        self.records
    }

    /// Bytes of the bodies so far.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many rows they became.
    pub fn rows(&self) -> usize {
        self.counts.len()
    }

    /// The body of each row, for code that keeps what was committed.
    pub fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[start..*end])
    }

    /// Returns the bodies, one after the other, without copying them.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The head of each row, in the order of [`Self::bodies`].
    pub fn heads(&self) -> impl Iterator<Item = RowHead> + '_ {
        (0..self.rows()).map(|row| RowHead {
            relative: self.row_relatives[row],
            count: self.counts[row],
            first_time_us: self.first_times[row],
            last_time_us: self.last_times[row],
            flags: self.flags[row],
            crc: self.crcs.get(row).copied().unwrap_or(0).cast_unsigned(),
        })
    }

    /// (producer, first sequence, count) of each run in each row, one after the other.
    pub fn row_runs(&self) -> impl Iterator<Item = &[i64]> {
        let bounds = self.run_from.iter().zip(&self.run_to);
        bounds.map(|(from, to)| {
            &self.run_values[from.unsigned_abs() as usize - 1..to.unsigned_abs() as usize]
        })
    }

    /// Appends the records of an uncompressed body and returns how many they are.
    ///
    /// # Errors
    /// `damaged` when the bytes are not records, `bad-argument` when the producer was in this batch
    /// before with other sequences. The batch must not be used then.
    pub fn push(&mut self, run: Run, body: &[u8]) -> Result<i64> {
        let before = self.records;
        self.begin_run(run)?;
        let mut at = self.bytes.len();
        self.bytes.extend_from_slice(body);
        for record in lengths(body) {
            let (bytes, time_us) = record?;
            self.place(run, before, bytes, time_us);
            at += bytes;
            if let Some(end) = self.ends.last_mut() {
                *end = at;
            }
        }
        self.end_run(run, before)
    }

    /// Appends the records of an uncompressed body, compressed into rows that fill about a page
    /// each.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_compressing(&mut self, run: Run, codec: Codec, body: &[u8]) -> Result<i64> {
        if codec == Codec::None {
            return self.push(run, body);
        }
        let before = self.records;
        self.begin_run(run)?;
        // How many raw bytes should become a page. The guess is corrected by what the last row
        // became.
        let mut raw_bytes = 2 * PAGE_BODY_BYTES;
        let mut rest = body;
        while !rest.is_empty() {
            let mut piece = head_of(rest, raw_bytes)?;
            let mut packed = compress(codec, piece.bytes)?;
            // A body that is longer than a page is stored outside of it, which costs a second look
            // at each read. So the piece is cut smaller, by the ratio just seen and a sixteenth
            // less, until it fits. A single record cannot be cut.
            while packed.len() > PAGE_BODY_BYTES && piece.count > 1 {
                piece = head_of(
                    rest,
                    piece.bytes.len() * PAGE_BODY_BYTES / packed.len() * 15 / 16,
                )?;
                packed = compress(codec, piece.bytes)?;
            }
            let fits = piece.bytes.len() * PAGE_BODY_BYTES / packed.len().max(1);
            raw_bytes = (fits * 15 / 16).clamp(PAGE_BODY_BYTES, RAW_BODY_BYTES_MAX / 16);
            rest = &rest[piece.bytes.len()..];
            self.whole_row(run, before, codec, &packed, &piece);
        }
        self.end_run(run, before)
    }

    /// Appends a body that was compressed elsewhere as a row of its own.
    ///
    /// # Errors
    /// As [`Self::push`], and `damaged` when it does not become records.
    pub fn push_compressed(&mut self, run: Run, codec: Codec, body: bytes::Bytes) -> Result<i64> {
        if codec == Codec::None {
            return self.push(run, &body);
        }
        let before = self.records;
        let raw = decompress(codec, body.clone())?;
        let piece = head_of(&raw, usize::MAX)?;
        if piece.bytes.len() != raw.len() {
            let text = format_args!("a row takes no more than {ROW_RECORDS_MAX} records");
            return Err(Error::bad_argument(text));
        }
        self.begin_run(run)?;
        self.whole_row(run, before, codec, &body, &piece);
        self.end_run(run, before)
    }

    /// Computes the checksums and ends of rows, which are known only once no record is added any
    /// more. The append itself calls it.
    ///
    /// # Errors
    /// `bad-argument` for more bytes than the server takes in one value.
    pub(crate) fn seal(&mut self) -> Result<()> {
        self.open = false;
        if self.bytes.len() > BATCH_BYTES_MAX {
            let bytes = self.bytes.len();
            let text = format_args!("a batch of {bytes} bytes is larger than {BATCH_BYTES_MAX}");
            return Err(Error::bad_argument(text));
        }
        let crcs = self.bodies().skip(self.crcs.len());
        let crcs: Vec<i32> = crcs
            .map(|body| dyno_checksum::crc32c(body).cast_signed())
            .collect();
        self.crcs.extend(crcs);
        let ends = self.ends.iter().skip(self.body_ends.len());
        self.body_ends
            .extend(ends.map(|end| i32::try_from(*end).unwrap_or(i32::MAX)));
        Ok(())
    }

    /// All bodies, one after the other.
    pub(crate) fn joined(&self) -> &[u8] {
        &self.bytes
    }

    fn begin_run(&mut self, run: Run) -> Result<()> {
        if run.producer_id == 0 {
            return Ok(());
        }
        let follows = self
            .last_sequences
            .last()
            .is_some_and(|last| last + 1 == run.first_sequence);
        // The append function compares one range of sequences for each producer. Two ranges of the
        // same producer in one batch could not be told from a gap.
        if self.producers.last() == Some(&run.producer_id) && follows {
            return Ok(());
        }
        if self.producers.contains(&run.producer_id) {
            let (producer, first) = (run.producer_id, run.first_sequence);
            return Err(Error::bad_argument(format_args!(
                "producer {producer} is in the batch already, and its sequence {first} does not follow"
            )));
        }
        self.producers.push(run.producer_id);
        self.first_sequences.push(run.first_sequence);
        self.last_sequences.push(run.first_sequence - 1);
        self.relatives.push(self.records);
        Ok(())
    }

    fn end_run(&mut self, run: Run, before: i64) -> Result<i64> {
        let pushed = self.records - before;
        if pushed == 0 {
            return Err(Error::new(Code::Damaged, "a body without records"));
        }
        if run.producer_id != 0
            && let Some(last) = self.last_sequences.last_mut()
        {
            *last = run.first_sequence + pushed - 1;
        }
        Ok(pushed)
    }

    /// Counts a record into the last row, or into a new one if it does not fit there.
    fn place(&mut self, run: Run, before: i64, bytes: usize, time_us: i64) {
        let sequence = run.first_sequence + self.records - before;
        if !self.open || !self.fits(run, sequence, bytes) {
            self.new_row(Codec::None, time_us);
            self.open = true;
        }
        let row = self.counts.len() - 1;
        self.counts[row] += 1;
        self.first_times[row] = self.first_times[row].min(time_us);
        self.last_times[row] = self.last_times[row].max(time_us);
        self.count_in_row(run.producer_id, sequence, 1);
        self.records += 1;
    }

    fn fits(&self, run: Run, sequence: i64, bytes: usize) -> bool {
        let row = self.counts.len() - 1;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        let runs = (self.run_to[row] - self.run_from[row] + 1).cast_unsigned() as usize / 3;
        let new_run = usize::from(!self.continues(run.producer_id, sequence));
        // [`PAGE_BODY_BYTES`] leaves room for one run already.
        let runs_bytes = (runs + new_run - 1) * RUN_BYTES;
        self.ends[row] - start + bytes + runs_bytes <= PAGE_BODY_BYTES
            && (self.counts[row].cast_unsigned() as usize) < ROW_RECORDS_MAX
    }

    fn whole_row(&mut self, run: Run, before: i64, codec: Codec, packed: &[u8], piece: &Piece) {
        self.new_row(codec, piece.first_time_us);
        self.open = false;
        self.bytes.extend_from_slice(packed);
        let row = self.counts.len() - 1;
        self.ends[row] = self.bytes.len();
        self.counts[row] = piece.count;
        self.last_times[row] = piece.last_time_us;
        let sequence = run.first_sequence + self.records - before;
        self.count_in_row(run.producer_id, sequence, i64::from(piece.count));
        self.records += i64::from(piece.count);
    }

    fn new_row(&mut self, codec: Codec, time_us: i64) {
        let runs = i32::try_from(self.run_values.len()).unwrap_or(i32::MAX);
        self.row_relatives.push(self.records);
        self.counts.push(0);
        self.first_times.push(time_us);
        self.last_times.push(time_us);
        self.run_from.push(runs + 1);
        self.run_to.push(runs);
        self.flags.push(codec.flags());
        self.ends.push(self.ends.last().copied().unwrap_or(0));
    }

    /// Whether a record continues the last run of the last row.
    fn continues(&self, producer: i64, sequence: i64) -> bool {
        matches!(self.run_values[..], [.., last, first, count] if last == producer && (producer == 0 || first + count == sequence))
    }

    fn count_in_row(&mut self, producer: i64, sequence: i64, records: i64) {
        let row = self.counts.len() - 1;
        if self.run_to[row] >= self.run_from[row] && self.continues(producer, sequence) {
            if let Some(count) = self.run_values.last_mut() {
                *count += records;
            }
        } else {
            self.run_values.extend([producer, sequence, records]);
            self.run_to[row] += 3;
        }
    }
}

/// The head of a row that has no offset yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowHead {
    /// The position of its first record in the batch, from 0.
    pub relative: i64,
    /// How many records it holds.
    pub count: i32,
    /// The earliest of the producers' times, microseconds since 1970.
    pub first_time_us: i64,
    /// The latest of the producers' times, microseconds since 1970.
    pub last_time_us: i64,
    /// The number of the codec, see [`Codec::flags`].
    pub flags: i16,
    /// CRC32C of the body as stored. 0 until the batch was appended.
    pub crc: u32,
}

/// Whole records at the beginning of a body.
struct Piece<'a> {
    bytes: &'a [u8],
    count: i32,
    first_time_us: i64,
    last_time_us: i64,
}

/// The piece at the beginning of a body: at least one record, and more while they fit.
fn head_of(body: &[u8], most_bytes: usize) -> Result<Piece<'_>> {
    let mut end = 0;
    let mut count = 0;
    let (mut first_time_us, mut last_time_us) = (i64::MAX, i64::MIN);
    for record in lengths(body) {
        let (bytes, time_us) = record?;
        // The count has a bound of its own, because readers look back only [`ROW_RECORDS_MAX`]
        // offsets for the row that holds an offset.
        if count > 0 && (end + bytes > most_bytes || count as usize == ROW_RECORDS_MAX) {
            break;
        }
        end += bytes;
        count += 1;
        first_time_us = first_time_us.min(time_us);
        last_time_us = last_time_us.max(time_us);
    }
    Ok(Piece {
        bytes: &body[..end],
        count,
        first_time_us,
        last_time_us,
    })
}

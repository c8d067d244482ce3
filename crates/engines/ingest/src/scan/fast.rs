//! Converts rows of the regular shape, one column at a time.
//!
//! A column is first gathered into words, and then converted by plain loops over arrays, which the
//! compiler vectorizes. Rows that a loop does not recognise are marked as failed and left to
//! [`super::careful`].
//!
//! This module uses `unsafe` to call the versions compiled for newer processors, after checking
//! that the processor has the features.

use super::columns::Columns;
use super::dictionary::{Keys, Strings};
use super::number::{Field, digits_8, digits_16, megahertz, signed_7};
use crate::contract::FIELDS;

/// Rows converted at a time: their text and delimiters stay in the first-level cache.
pub(super) const BATCH: usize = 256;

/// One mark for each row of a batch, as wide as the words in the loops that set it.
pub(super) type Failed = [u64; BATCH];

/// The position of a row in its block.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowAt {
    /// Index of the row's first delimiter.
    pub(super) first: u32,
    /// Position of the row's first byte.
    pub(super) start: u32,
    /// Line number in the source.
    pub(super) line: u64,
}

/// Up to [`BATCH`] rows with the right number of delimiters each.
pub(super) struct Batch<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) delimiters: &'a [u32],
    pub(super) rows: &'a [RowAt],
}

impl Batch<'_> {
    /// Start and end of field `FIELD` of `row`.
    #[inline(always)]
    fn field<const FIELD: usize>(&self, row: &RowAt) -> (usize, usize) {
        let delimiters = &self.delimiters[row.first as usize..][..FIELDS];
        let start = if FIELD == 0 {
            row.start
        } else {
            delimiters[FIELD - 1] + 1
        };
        (start as usize, delimiters[FIELD] as usize)
    }

    /// Marks the rows with a byte that only the careful parser understands.
    pub(super) fn mark_odd(&self, odd: &[u32], failed: &mut Failed) {
        if odd.is_empty() {
            return;
        }
        let Some(first) = self.rows.first() else {
            return;
        };
        // Rows and odd bytes are both in the order of their positions, so one pass over each is
        // enough. Odd bytes before a row are in lines that are not of this batch.
        let mut next = odd.partition_point(|&at| at < first.start);
        for (row, failed) in self.rows.iter().zip(failed) {
            let end = self.delimiters[row.first as usize + FIELDS - 1];
            while odd.get(next).is_some_and(|&at| at < end) {
                *failed |= u64::from(odd[next] >= row.start);
                next += 1;
            }
        }
    }

    /// Appends the result of `convert` for field `FIELD` of every row.
    #[inline(always)]
    fn column<const FIELD: usize, T: Default + Copy>(
        &self,
        column: &mut Vec<T>,
        words: &mut Words,
        failed: &mut Failed,
        convert: impl Fn(Field) -> (T, bool),
    ) {
        for (i, row) in self.rows.iter().enumerate() {
            let (start, end) = self.field::<FIELD>(row);
            // The load may begin before the field, at most in the margin before the text. The
            // conversion looks only at the field's own bytes.
            let bytes = self.bytes[end - 16..end].try_into().expect("sixteen bytes");
            let both = u128::from_le_bytes(bytes);
            words.high[i] = both as u64;
            words.low[i] = (both >> 64) as u64;
            words.len[i] = (end - start) as u64;
        }
        // All slots of the batch are converted, even unused ones, whose marks are ignored.
        let mut values = [T::default(); BATCH];
        let fields = words.low.iter().zip(&words.high).zip(&words.len);
        for (((&low, &high), &len), (value, failed)) in fields.zip(values.iter_mut().zip(failed)) {
            let (converted, ok) = convert(Field { low, high, len });
            *value = converted;
            *failed |= u64::from(!ok);
        }
        column.extend_from_slice(&values[..self.rows.len()]);
    }

    #[inline(always)]
    fn strings<const FIELD: usize>(
        &self,
        column: &mut Vec<u32>,
        strings: &mut Strings,
        keys: &mut Keys,
        failed: &mut Failed,
    ) {
        for (i, row) in self.rows.iter().enumerate() {
            let (start, end) = self.field::<FIELD>(row);
            // The load may end behind the field, at most in the margin behind the text. `finish`
            // clears what does not belong to the string.
            let bytes = self.bytes[start..start + 16]
                .try_into()
                .expect("sixteen bytes");
            keys.set(i, bytes, end - start);
        }
        keys.finish(failed);
        strings.codes_of(keys, self.rows.len(), failed, column);
    }
}

/// The bytes that end the fields of one column, by row: see [`Field`].
struct Words {
    low: [u64; BATCH],
    high: [u64; BATCH],
    len: [u64; BATCH],
}

/// Buffers that every batch reuses.
pub(super) struct Scratch {
    words: Words,
    keys: Keys,
    hertz: Vec<u64>,
}

impl Default for Scratch {
    fn default() -> Self {
        let words = Words {
            low: [0; BATCH],
            high: [0; BATCH],
            len: [0; BATCH],
        };
        Scratch {
            words,
            keys: Keys::new(),
            hertz: Vec::with_capacity(BATCH),
        }
    }
}

/// Appends the rows of `batch` to `columns`. The values of rows marked in `failed` are meaningless.
pub(super) fn convert(
    batch: &Batch<'_>,
    columns: &mut Columns,
    scratch: &mut Scratch,
    failed: &mut Failed,
) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f")
            && has!("avx512dq")
            && has!("avx512bw")
            && has!("avx512cd")
            && has!("bmi2")
        {
            // SAFETY: the features were detected.
            return unsafe { convert_avx512(batch, columns, scratch, failed) };
        }
        if has!("avx2") && has!("bmi2") {
            // SAFETY: the features were detected.
            return unsafe { convert_avx2(batch, columns, scratch, failed) };
        }
    }
    convert_columns(batch, columns, scratch, failed);
}

/// The same code with eight words in a register and a 64-bit vector multiplication.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512cd,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
fn convert_avx512(
    batch: &Batch<'_>,
    columns: &mut Columns,
    scratch: &mut Scratch,
    failed: &mut Failed,
) {
    convert_columns(batch, columns, scratch, failed);
}

/// The same code for processors of the last ten years.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn convert_avx2(
    batch: &Batch<'_>,
    columns: &mut Columns,
    scratch: &mut Scratch,
    failed: &mut Failed,
) {
    convert_columns(batch, columns, scratch, failed);
}

#[inline(always)]
fn convert_columns(
    batch: &Batch<'_>,
    columns: &mut Columns,
    scratch: &mut Scratch,
    failed: &mut Failed,
) {
    let Scratch { words, keys, hertz } = scratch;
    // Numbers come first, because most bad rows fail there, before their strings reach a
    // dictionary.
    batch.column::<0, _>(&mut columns.id, words, failed, digits_16);
    batch.column::<1, _>(&mut columns.timestamp, words, failed, |field| {
        let (value, ok) = digits_16(field);
        (value as u32, ok & (value <= u64::from(u32::MAX)))
    });
    batch.column::<4, _>(&mut columns.snr, words, failed, small_signed);
    batch.column::<8, _>(&mut columns.power, words, failed, small_signed);
    batch.column::<9, _>(&mut columns.drift, words, failed, small_signed);
    batch.column::<10, _>(&mut columns.distance, words, failed, |field| {
        let (value, ok) = digits_8(field);
        (value as u32, ok)
    });
    batch.column::<11, _>(&mut columns.azimuth, words, failed, |field| {
        let (value, ok) = digits_8(field);
        (value as u16, ok & (value <= u64::from(u16::MAX)))
    });
    // The band follows from the frequency, but its field must still be an integer.
    batch.column::<12, _>(&mut Vec::new(), words, failed, |field| {
        ((), signed_7(field).1)
    });
    batch.column::<14, _>(&mut columns.code, words, failed, |field| {
        // Archives from before 2010-12 leave it empty.
        let (value, ok) = digits_8(field);
        let empty = field.len == 0;
        let value = if empty { 0 } else { value };
        (value as u8, (ok | empty) & (value <= u64::from(u8::MAX)))
    });
    hertz.clear();
    batch.column::<5, _>(hertz, words, failed, megahertz);
    let dictionaries = &mut columns.dictionaries;
    dictionaries
        .frequency
        .codes_of(hertz, failed, &mut columns.frequency);
    batch.strings::<2>(
        &mut columns.reporter,
        &mut dictionaries.reporter,
        keys,
        failed,
    );
    batch.strings::<3>(
        &mut columns.reporter_grid,
        &mut dictionaries.reporter_grid,
        keys,
        failed,
    );
    batch.strings::<6>(
        &mut columns.callsign,
        &mut dictionaries.callsign,
        keys,
        failed,
    );
    batch.strings::<7>(&mut columns.grid, &mut dictionaries.grid, keys, failed);
    batch.strings::<13>(
        &mut columns.version,
        &mut dictionaries.version,
        keys,
        failed,
    );
}

#[inline(always)]
fn small_signed(field: Field) -> (i8, bool) {
    let (value, ok) = signed_7(field);
    (value as i8, ok & (value == i64::from(value as i8)))
}

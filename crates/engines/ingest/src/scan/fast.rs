//! Converts rows of the regular shape, one column at a time.
//!
//! A column at a time keeps the loops short and free of unpredictable branches. What a loop does
//! not recognise it marks as failed and leaves to [`super::careful`].
//!
//! This module uses `unsafe` to call the same loops, compiled for newer processors, after the
//! processor was asked.

use super::columns::Columns;
use super::dictionary::{Strings, key};
use super::number::{digits_8, digits_16, megahertz, signed_8};
use crate::contract::FIELDS;

/// Rows converted at a time: their text and delimiters stay in the first-level cache.
pub(super) const BATCH: usize = 256;

/// Where a row is.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowAt {
    /// Index of its first delimiter.
    pub(super) first: u32,
    /// Position of its first byte.
    pub(super) start: u32,
    /// Its line in the source.
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

    /// Marks the rows that hold a byte which only the careful way understands.
    pub(super) fn mark_odd(&self, odd: &[u32], failed: &mut [bool; BATCH]) {
        if odd.is_empty() {
            return;
        }
        let Some(first) = self.rows.first() else {
            return;
        };
        let mut next = odd.partition_point(|&at| at < first.start);
        for (row, failed) in self.rows.iter().zip(failed) {
            let end = self.delimiters[row.first as usize + FIELDS - 1];
            while odd.get(next).is_some_and(|&at| at < end) {
                *failed |= odd[next] >= row.start;
                next += 1;
            }
        }
    }

    /// Appends what `convert` makes of field `FIELD` of every row. A plain loop, because an
    /// iterator's body would be compiled apart, without the vector features of its caller.
    #[inline(always)]
    fn column<const FIELD: usize, T: Default + Clone>(
        &self,
        column: &mut Vec<T>,
        failed: &mut [bool; BATCH],
        mut convert: impl FnMut(&[u8], usize, usize) -> (T, bool),
    ) {
        let before = column.len();
        column.resize(before + self.rows.len(), T::default());
        let values = &mut column[before..];
        for ((row, value), failed) in self.rows.iter().zip(values).zip(failed) {
            let (start, end) = self.field::<FIELD>(row);
            let (converted, ok) = convert(self.bytes, start, end);
            *value = converted;
            *failed |= !ok;
        }
    }

    #[inline(always)]
    fn strings<const FIELD: usize>(
        &self,
        column: &mut Vec<u32>,
        strings: &mut Strings,
        failed: &mut [bool; BATCH],
    ) {
        let before = column.len();
        column.resize(before + self.rows.len(), 0);
        let codes = &mut column[before..];
        for ((row, code), failed) in self.rows.iter().zip(codes).zip(failed) {
            let (start, end) = self.field::<FIELD>(row);
            let len = end - start;
            // A row that fails anyway must not leave its string in the dictionary.
            if *failed || len > 16 {
                *failed = true;
                continue;
            }
            let (low, high) = key(self.bytes, start, len);
            *code = strings.code_of_key(low, high);
        }
    }
}

/// Appends the rows of `batch` to `columns`; rows that `failed` names hold nothing of meaning.
pub(super) fn convert(batch: &Batch<'_>, columns: &mut Columns, failed: &mut [bool; BATCH]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi2") {
        // SAFETY: the features were detected.
        return unsafe { convert_bmi2(batch, columns, failed) };
    }
    convert_columns(batch, columns, failed);
}

/// The same code, compiled for processors of the last ten years.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn convert_bmi2(batch: &Batch<'_>, columns: &mut Columns, failed: &mut [bool; BATCH]) {
    convert_columns(batch, columns, failed);
}

#[inline(always)]
fn convert_columns(batch: &Batch<'_>, columns: &mut Columns, failed: &mut [bool; BATCH]) {
    // Numbers first: most bad rows fail here, before their strings reach a dictionary.
    batch.column::<0, _>(&mut columns.id, failed, digits_16);
    batch.column::<1, _>(&mut columns.timestamp, failed, |bytes, start, end| {
        let (value, ok) = digits_16(bytes, start, end);
        (value as u32, ok & (value <= u64::from(u32::MAX)))
    });
    batch.column::<4, _>(&mut columns.snr, failed, small_signed);
    batch.column::<8, _>(&mut columns.power, failed, small_signed);
    batch.column::<9, _>(&mut columns.drift, failed, small_signed);
    batch.column::<10, _>(&mut columns.distance, failed, |bytes, start, end| {
        let (value, ok) = digits_8(bytes, start, end);
        (value as u32, ok)
    });
    batch.column::<11, _>(&mut columns.azimuth, failed, |bytes, start, end| {
        let (value, ok) = digits_8(bytes, start, end);
        (value as u16, ok & (value <= u64::from(u16::MAX)))
    });
    for (row, failed) in batch.rows.iter().zip(failed.iter_mut()) {
        let (start, end) = batch.field::<12>(row);
        *failed |= !signed_8(batch.bytes, start, end).1;
    }
    batch.column::<14, _>(&mut columns.code, failed, |bytes, start, end| {
        // Archives from before 2010-12 leave it empty.
        let (value, ok) = digits_8(bytes, start, end);
        let value = if start == end { 0 } else { value };
        (
            value as u8,
            (ok | (start == end)) & (value <= u64::from(u8::MAX)),
        )
    });
    let dictionaries = &mut columns.dictionaries;
    let before = columns.frequency.len();
    columns.frequency.resize(before + batch.rows.len(), 0);
    let codes = &mut columns.frequency[before..];
    for ((row, code), failed) in batch.rows.iter().zip(codes).zip(failed.iter_mut()) {
        let (start, end) = batch.field::<5>(row);
        let (hertz, ok) = megahertz(batch.bytes, start, end);
        *failed |= !ok;
        if !*failed {
            *code = dictionaries.frequency.code_of(hertz);
        }
    }
    batch.strings::<2>(&mut columns.reporter, &mut dictionaries.reporter, failed);
    batch.strings::<3>(
        &mut columns.reporter_grid,
        &mut dictionaries.reporter_grid,
        failed,
    );
    batch.strings::<6>(&mut columns.callsign, &mut dictionaries.callsign, failed);
    batch.strings::<7>(&mut columns.grid, &mut dictionaries.grid, failed);
    batch.strings::<13>(&mut columns.version, &mut dictionaries.version, failed);
}

#[inline(always)]
fn small_signed(bytes: &[u8], start: usize, end: usize) -> (i8, bool) {
    let (value, ok) = signed_8(bytes, start, end);
    (value as i8, ok & (value == i64::from(value as i8)))
}

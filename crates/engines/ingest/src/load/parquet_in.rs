//! Parquet files with the columns of the contract as an input.
//!
//! `band`, `mode` and `column_count` are made anew, as for every other input. A timestamp may be a
//! number of seconds or an Arrow timestamp of any unit; with a time zone it is an instant, and
//! without one it is read as UTC. A row whose timestamp is not a whole second, or whose id is
//! negative in a signed column, goes to quarantine, because the table could only hold another
//! value.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use dyno_formats::parquet_read::{
    Codec, Leaf, Meaning, ParquetFile, Physical, ReadError, ValueReader,
};

use super::archive::Sink;
use super::parquet_codes::CodedFile;
use super::report::StageSeconds;
use crate::scan::{BadRow, Columns, Scanner};
use crate::{Error, Result};

pub(super) const NUMBERS: [&str; 9] = [
    "id",
    "timestamp",
    "snr",
    "frequency",
    "power",
    "drift",
    "distance",
    "azimuth",
    "code",
];
pub(super) const STRINGS: [&str; 5] = ["reporter", "reporter_grid", "callsign", "grid", "version"];

/// Rows decoded at a time.
const BATCH: usize = 8192;

/// Reads every row of `file` into `sink`.
pub(super) fn read(
    file: File,
    sink: &mut Sink<'_, Scanner>,
    stages: &mut StageSeconds,
) -> Result<()> {
    let path = sink.path();
    let refused = |reason: String| Error::Refused {
        path: path.to_owned(),
        reason,
    };
    let file = ParquetFile::from_file(path, file).map_err(|error| refused(why(error)))?;
    let leaves = file.leaves();
    let position = |name: &str, stored: &[Physical], what| {
        let at = leaves
            .iter()
            .position(|leaf| leaf.path == name)
            .ok_or_else(|| refused(format!("it has no column {name}, which the table needs")))?;
        let leaf = &leaves[at];
        // A repeated column has any number of values in a row, and more than one definition level
        // means that the column is nested. The table needs one value for each row.
        let plain = leaf.repetition_levels == 0 && leaf.definition_levels <= 1;
        if plain && stored.contains(&leaf.physical) && leaf.meaning != Meaning::Decimal {
            return Ok(at);
        }
        Err(refused(format!("column {name} is not stored as {what}")))
    };
    let numbers: Vec<usize> = NUMBERS
        .iter()
        .map(|name| position(name, &[Physical::Int32, Physical::Int64], "integers"))
        .collect::<Result<_>>()?;
    let strings: Vec<usize> = STRINGS
        .iter()
        .map(|name| position(name, &[Physical::ByteArray], "strings"))
        .collect::<Result<_>>()?;
    let rules = Rules {
        per_second: ticks_per_second(&leaves[numbers[1]]).map_err(refused)?,
        unsigned_ids: is_unsigned(&leaves[numbers[0]]),
    };
    refuse_other_codecs(&file, numbers.iter().chain(&strings)).map_err(refused)?;
    if let Some(coded) = CodedFile::from_file(&file) {
        return coded.read(rules, sink, stages);
    }
    let mut row = 0;
    for group in 0..file.row_groups() {
        let batches = Batches { path, row, rules };
        row = batches.read(&file, group, &numbers, &strings, sink, stages)?;
    }
    Ok(())
}

/// The reader's message without the path, which the surrounding error has.
fn why(error: ReadError) -> String {
    match error {
        ReadError::File { reason, .. } => reason,
        ReadError::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// How the file's columns are to be interpreted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// How many units of the timestamp column make a second.
    pub(super) per_second: i64,
    /// Whether the ids use all 64 bits: Parquet stores those above 2^63 - 1 as negative integers.
    pub(super) unsigned_ids: bool,
}

impl Rules {
    /// The second of a stored timestamp; `None` if it is not a whole second that the table can
    /// hold.
    pub(super) fn second(&self, stored: i64) -> Option<u32> {
        let whole = stored.rem_euclid(self.per_second) == 0;
        whole
            .then(|| u32::try_from(stored.div_euclid(self.per_second)).ok())
            .flatten()
    }
}

/// Reports an unsupported codec once for the file, with those that can be read.
fn refuse_other_codecs<'a>(
    file: &ParquetFile,
    mut columns: impl Iterator<Item = &'a usize>,
) -> std::result::Result<(), String> {
    columns.try_for_each(|&at| {
        let mut codecs = (0..file.row_groups()).map(|group| file.codec(group, at));
        match codecs.find(|codec| matches!(codec, Codec::Other(_))) {
            Some(codec) => Err(format!(
                "column {} is compressed with {codec}; uncompressed, SNAPPY, ZSTD, LZ4 and LZ4_RAW are read",
                file.leaves()[at].path
            )),
            None => Ok(()),
        }
    })
}

/// How many units of the timestamp column make a second.
fn ticks_per_second(leaf: &Leaf) -> std::result::Result<i64, String> {
    match leaf.meaning {
        Meaning::Timestamp { per_second } => Ok(per_second),
        Meaning::Integer { .. } | Meaning::Plain => Ok(1),
        // Files of older writers have only an annotation, which says less.
        Meaning::Decimal | Meaning::Text | Meaning::Other(_) if !leaf.is_logical => Ok(1),
        Meaning::Other(name) => Err(format!("column timestamp is {name}, not a time")),
        Meaning::Decimal | Meaning::Text => {
            Err("column timestamp is not a time but a decimal or text".to_owned())
        }
    }
}

fn is_unsigned(leaf: &Leaf) -> bool {
    matches!(leaf.meaning, Meaning::Integer { signed: false, .. })
}

struct Batches<'a> {
    path: &'a Path,
    row: u64,
    rules: Rules,
}

impl Batches<'_> {
    /// Reads one row group; returns the number of rows up to its end.
    fn read(
        mut self,
        file: &ParquetFile,
        group: usize,
        numbers: &[usize],
        strings: &[usize],
        sink: &mut Sink<'_, Scanner>,
        stages: &mut StageSeconds,
    ) -> Result<u64> {
        let open = |&i: &usize| file.values(group, i).map_err(|error| self.damaged(error));
        let mut number_readers = numbers
            .iter()
            .map(open)
            .collect::<Result<Vec<ValueReader>>>()?;
        let mut string_readers = strings
            .iter()
            .map(open)
            .collect::<Result<Vec<ValueReader>>>()?;
        let mut left = file.row_group_rows(group) as usize;
        let mut number_values: Vec<Vec<Option<i64>>> = vec![Vec::new(); NUMBERS.len()];
        let mut string_values: Vec<Vec<Option<Bytes>>> = vec![Vec::new(); STRINGS.len()];
        while left > 0 {
            let begun = Instant::now();
            let n = left.min(BATCH);
            for (reader, values) in number_readers.iter_mut().zip(&mut number_values) {
                values.clear();
                reader
                    .integers(n, values)
                    .map_err(|error| self.damaged(error))?;
            }
            for (reader, values) in string_readers.iter_mut().zip(&mut string_values) {
                values.clear();
                reader
                    .texts(n, values)
                    .map_err(|error| self.damaged(error))?;
            }
            stages.inflate += begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            self.append(n, &number_values, &string_values, sink);
            stages.parse += begun.elapsed().as_secs_f64();
            sink.added(n)?;
            sink.flush_when_full(stages)?;
            left -= n;
        }
        Ok(self.row)
    }

    fn append(
        &mut self,
        rows: usize,
        numbers: &[Vec<Option<i64>>],
        strings: &[Vec<Option<Bytes>>],
        sink: &mut Sink<'_, Scanner>,
    ) {
        for i in 0..rows {
            self.row += 1;
            let mut values = [0; NUMBERS.len()];
            let mut missing = None;
            for (at, column) in numbers.iter().enumerate() {
                match column[i] {
                    Some(value) => values[at] = value,
                    None => missing = Some(NUMBERS[at]),
                }
            }
            // NULL counts as the empty string.
            let text = |at: usize| strings[at][i].as_deref().unwrap_or_default();
            let texts: [&[u8]; STRINGS.len()] = std::array::from_fn(text);
            let appended = match missing {
                Some(name) => Err(format!("column {name} is NULL")),
                None => append_row(sink.chunk(), self.rules, &values, &texts),
            };
            if let Err(reason) = appended {
                bad_row(sink, self.row, reason, &values, &texts);
            }
        }
    }

    fn damaged(&self, error: ReadError) -> Error {
        Error::Refused {
            path: self.path.to_owned(),
            reason: format!("behind row {}: {}", self.row, why(error)),
        }
    }
}

/// Puts a row into quarantine in a readable form, because it has no line of its own.
pub(super) fn bad_row(
    sink: &mut Sink<'_, Scanner>,
    row: u64,
    reason: String,
    values: &[i64; NUMBERS.len()],
    texts: &[&[u8]; STRINGS.len()],
) {
    let texts = texts.map(String::from_utf8_lossy);
    let raw = format!("{NUMBERS:?}={values:?},{STRINGS:?}={texts:?}");
    let raw = raw.as_bytes();
    sink.put_aside(&BadRow {
        line: row,
        reason,
        raw,
    });
}

/// Appends one row, or returns which value is out of range.
pub(super) fn append_row(
    columns: &mut Columns,
    rules: Rules,
    values: &[i64; NUMBERS.len()],
    texts: &[&[u8]; STRINGS.len()],
) -> std::result::Result<(), String> {
    fn fit<T: TryFrom<i64>>(values: &[i64], at: usize) -> std::result::Result<T, String> {
        T::try_from(values[at]).map_err(|_| {
            let kind = std::any::type_name::<T>();
            format!(
                "column {}: {} is not of type {kind}",
                NUMBERS[at], values[at]
            )
        })
    }
    // Everything is checked before anything is pushed. So a refused row leaves neither a column
    // that is longer than the others nor a string in a dictionary.
    if let Some(at) = texts
        .iter()
        .position(|text| std::str::from_utf8(text).is_err())
    {
        return Err(format!("column {}: it is not UTF-8", STRINGS[at]));
    }
    let timestamp = rules.second(values[1]).ok_or_else(|| {
        format!(
            "column timestamp: {} / {} is not a whole second from 1970 to 2106",
            values[1], rules.per_second
        )
    })?;
    if !rules.unsigned_ids {
        fit::<u64>(values, 0)?;
    }
    let (snr, power) = (fit(values, 2)?, fit(values, 4)?);
    let (drift, distance, azimuth) = (fit(values, 5)?, fit(values, 6)?, fit(values, 7)?);
    let (frequency, code) = (fit::<u64>(values, 3)?, fit(values, 8)?);
    let [reporter, reporter_grid, callsign, grid, version] = *texts;
    let dictionaries = &mut columns.dictionaries;
    columns
        .reporter
        .push(dictionaries.reporter.code_of(reporter));
    columns
        .reporter_grid
        .push(dictionaries.reporter_grid.code_of(reporter_grid));
    columns
        .callsign
        .push(dictionaries.callsign.code_of(callsign));
    columns.grid.push(dictionaries.grid.code_of(grid));
    columns.version.push(dictionaries.version.code_of(version));
    columns
        .frequency
        .push(dictionaries.frequency.code_of(frequency));
    columns.id.push(values[0] as u64);
    columns.timestamp.push(timestamp);
    columns.snr.push(snr);
    columns.power.push(power);
    columns.drift.push(drift);
    columns.distance.push(distance);
    columns.azimuth.push(azimuth);
    columns.code.push(code);
    Ok(())
}

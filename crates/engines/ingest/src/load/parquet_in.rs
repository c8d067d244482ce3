//! Parquet files with the columns of the contract as an input.
//!
//! `band`, `mode` and `column_count` are made anew, as for every other input. A timestamp may be a number of seconds
//! or an Arrow timestamp of any unit; with a time zone it is an instant, and without one it is read as UTC. A row whose
//! timestamp is not a whole second, or whose id is negative in a signed column, goes to quarantine, because the table
//! could only hold another value.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::lane::Sink;
use super::parquet_codes::CodedFile;
use super::report::StageSeconds;
use crate::scan::{BadRow, Columns};
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

/// Rows read at a time.
const BATCH: usize = 8192;

/// One column's values of a batch; `None` where the file has NULL.
enum Reader {
    Int32(ColumnReaderImpl<Int32Type>),
    /// Its upper half looks negative in the file.
    Unsigned32(ColumnReaderImpl<Int32Type>),
    Int64(ColumnReaderImpl<Int64Type>),
    Bytes(ColumnReaderImpl<parquet::data_type::ByteArrayType>),
}

/// Reads every row of `file` into `sink`.
pub(super) fn read(
    path: &Path,
    file: File,
    sink: &mut Sink<'_>,
    stages: &mut StageSeconds,
) -> Result<()> {
    let refused = |reason: String| Error::Refused {
        path: path.to_owned(),
        reason,
    };
    let reader = SerializedFileReader::new(file).map_err(|e| refused(e.to_string()))?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let position = |name: &str, stored: &[Type], what| {
        let at = (0..schema.num_columns())
            .find(|&i| schema.column(i).path().string() == name)
            .ok_or_else(|| refused(format!("it has no column {name}, which the table needs")))?;
        let column = schema.column(at);
        let plain = column.max_rep_level() == 0 && column.max_def_level() <= 1;
        if plain && stored.contains(&column.physical_type()) && !is_decimal(&column) {
            return Ok(at);
        }
        Err(refused(format!("column {name} is not stored as {what}")))
    };
    let numbers: Vec<usize> = NUMBERS
        .iter()
        .map(|name| position(name, &[Type::INT32, Type::INT64], "integers"))
        .collect::<Result<_>>()?;
    let strings: Vec<usize> = STRINGS
        .iter()
        .map(|name| position(name, &[Type::BYTE_ARRAY], "strings"))
        .collect::<Result<_>>()?;
    let rules = Rules {
        per_second: ticks_per_second(&schema.column(numbers[1])).map_err(refused)?,
        unsigned_ids: is_unsigned(&schema.column(numbers[0])),
    };
    refuse_other_codecs(&reader, numbers.iter().chain(&strings)).map_err(refused)?;
    if let Some(coded) = CodedFile::open(path) {
        return coded.read(rules, sink, stages);
    }
    let mut row = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader
            .get_row_group(group)
            .map_err(|e| refused(e.to_string()))?;
        let batches = Batches { path, row, rules };
        row = batches.read(group.as_ref(), &numbers, &strings, sink, stages)?;
    }
    Ok(())
}

/// What the file's columns mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Units of the timestamp column that make a second.
    pub(super) per_second: i64,
    /// Whether the ids use all 64 bits: Parquet stores those above 2^63 - 1 as negative integers.
    pub(super) unsigned_ids: bool,
}

impl Rules {
    /// The second of a timestamp as the file stores it; `None` where it is not a whole one that the table can hold.
    pub(super) fn second(&self, stored: i64) -> Option<u32> {
        let whole = stored.rem_euclid(self.per_second) == 0;
        whole
            .then(|| u32::try_from(stored.div_euclid(self.per_second)).ok())
            .flatten()
    }
}

/// The library's own message would name a feature of its build.
fn refuse_other_codecs<'a>(
    file: &SerializedFileReader<File>,
    columns: impl Iterator<Item = &'a usize>,
) -> std::result::Result<(), String> {
    for &at in columns {
        for group in file.metadata().row_groups() {
            let column = group.column(at);
            let codec = column.compression();
            if !matches!(
                codec,
                Compression::UNCOMPRESSED
                    | Compression::SNAPPY
                    | Compression::ZSTD(_)
                    | Compression::LZ4
                    | Compression::LZ4_RAW
            ) {
                let codec = codec.to_string();
                return Err(format!(
                    "column {} is compressed with {}; uncompressed, SNAPPY, ZSTD, LZ4 and LZ4_RAW are read",
                    column.column_path().string(),
                    codec.split('(').next().unwrap_or(&codec)
                ));
            }
        }
    }
    Ok(())
}

/// How many units of the timestamp column make a second.
fn ticks_per_second(column: &ColumnDescriptor) -> std::result::Result<i64, String> {
    match column.logical_type_ref() {
        Some(LogicalType::Timestamp(time)) => Ok(match time.unit {
            TimeUnit::MILLIS => 1_000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        }),
        // Files of older writers have only the older annotation.
        None if column.converted_type() == ConvertedType::TIMESTAMP_MILLIS => Ok(1_000),
        None if column.converted_type() == ConvertedType::TIMESTAMP_MICROS => Ok(1_000_000),
        Some(LogicalType::Integer(_)) | None => Ok(1),
        Some(other) => Err(format!("column timestamp is {other:?}, not a time")),
    }
}

fn is_decimal(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_)))
        || column.converted_type() == ConvertedType::DECIMAL
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => !integer.is_signed,
        _ => matches!(
            column.converted_type(),
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        ),
    }
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
        group: &dyn RowGroupReader,
        numbers: &[usize],
        strings: &[usize],
        sink: &mut Sink<'_>,
        stages: &mut StageSeconds,
    ) -> Result<u64> {
        let open = |&i: &usize| Reader::open(group, i).map_err(|reason| self.damaged(reason));
        let mut number_readers = numbers.iter().map(open).collect::<Result<Vec<_>>>()?;
        let mut string_readers = strings.iter().map(open).collect::<Result<Vec<_>>>()?;
        let mut left = group.metadata().num_rows() as usize;
        let mut number_values: Vec<Vec<Option<i64>>> = vec![Vec::new(); NUMBERS.len()];
        let mut string_values: Vec<Vec<ByteArray>> = vec![Vec::new(); STRINGS.len()];
        while left > 0 {
            let begun = Instant::now();
            let n = left.min(BATCH);
            for (reader, values) in number_readers.iter_mut().zip(&mut number_values) {
                reader
                    .numbers(n, values)
                    .map_err(|reason| self.damaged(reason))?;
            }
            for (reader, values) in string_readers.iter_mut().zip(&mut string_values) {
                reader
                    .strings(n, values)
                    .map_err(|reason| self.damaged(reason))?;
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
        strings: &[Vec<ByteArray>],
        sink: &mut Sink<'_>,
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
            let texts: [&[u8]; STRINGS.len()] = std::array::from_fn(|at| strings[at][i].data());
            let appended = match missing {
                Some(name) => Err(format!("column {name} is NULL")),
                None => append_row(sink.columns(), self.rules, &values, &texts),
            };
            if let Err(reason) = appended {
                bad_row(sink, self.row, reason, &values, &texts);
            }
        }
    }

    fn damaged(&self, reason: String) -> Error {
        Error::Refused {
            path: self.path.to_owned(),
            reason: format!("behind row {}: {reason}", self.row),
        }
    }
}

/// Puts a row aside in a readable form, since it has no line of its own.
pub(super) fn bad_row(
    sink: &mut Sink<'_>,
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

/// Appends one row, or tells which value is out of its range.
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

impl Reader {
    fn open(group: &dyn RowGroupReader, column: usize) -> std::result::Result<Reader, String> {
        match group.get_column_reader(column).map_err(|e| e.to_string())? {
            ColumnReader::Int32ColumnReader(reader)
                if is_unsigned(group.metadata().column(column).column_descr()) =>
            {
                Ok(Reader::Unsigned32(reader))
            }
            ColumnReader::Int32ColumnReader(reader) => Ok(Reader::Int32(reader)),
            ColumnReader::Int64ColumnReader(reader) => Ok(Reader::Int64(reader)),
            ColumnReader::ByteArrayColumnReader(reader) => Ok(Reader::Bytes(reader)),
            _ => {
                let name = group.metadata().column(column).column_path().string();
                Err(format!(
                    "column {name} is stored neither as integers nor as strings"
                ))
            }
        }
    }

    fn numbers(
        &mut self,
        rows: usize,
        out: &mut Vec<Option<i64>>,
    ) -> std::result::Result<(), String> {
        out.clear();
        match self {
            Reader::Int32(reader) => values(reader, rows, |value| out.push(value.map(i64::from))),
            Reader::Unsigned32(reader) => values(reader, rows, |value| {
                out.push(value.map(|value| i64::from(value as u32)));
            }),
            Reader::Int64(reader) => values(reader, rows, |value| out.push(value)),
            Reader::Bytes(_) => Err("a column of numbers is stored as strings".to_owned()),
        }
    }

    /// NULL counts as the empty string.
    fn strings(
        &mut self,
        rows: usize,
        out: &mut Vec<ByteArray>,
    ) -> std::result::Result<(), String> {
        out.clear();
        match self {
            Reader::Bytes(reader) => values(reader, rows, |value| {
                out.push(value.unwrap_or_else(|| ByteArray::from(Vec::new())));
            }),
            _ => Err("a column of strings is stored as numbers".to_owned()),
        }
    }
}

/// Hands the next `rows` values to `take`, `None` for NULL.
fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    mut take: impl FnMut(Option<T::T>),
) -> std::result::Result<(), String> {
    let mut left = rows;
    while left > 0 {
        let (mut present, mut levels) = (Vec::with_capacity(left), Vec::with_capacity(left));
        let (records, _, _) = reader
            .read_records(left, Some(&mut levels), None, &mut present)
            .map_err(|e| e.to_string())?;
        if records == 0 {
            return Err(format!("a column ends {left} values too early"));
        }
        let mut present = present.into_iter();
        // A column that cannot hold NULL has no levels.
        if levels.is_empty() {
            present.by_ref().for_each(|value| take(Some(value)));
        } else {
            for &level in &levels {
                take(if level > 0 { present.next() } else { None });
            }
        }
        left -= records;
    }
    Ok(())
}

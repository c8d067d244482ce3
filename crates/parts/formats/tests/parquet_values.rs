//! Columns with NULLs and in any encoding, written by the parquet crate's own writer, read back
//! value by value.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

mod parquet_damaged;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use dyno_formats::columns::{Field, Kind, Values};
use dyno_formats::parquet_read::{Meaning, ParquetFile, Physical};
use dyno_formats::parquet_write::{
    self, ColumnOptions, Layout, Options, RowGroupWriter, TableWriter,
};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

const SCHEMA: &str = "message rows {
    optional int64 wide;
    optional int32 narrow (INTEGER(32, false));
    required int32 there;
    optional binary text (STRING);
    required binary bytes;
}";
const NAMES: [&str; 5] = ["wide", "narrow", "there", "text", "bytes"];

#[derive(Debug, Clone)]
struct Row {
    wide: Option<i64>,
    narrow: Option<i32>,
    there: i32,
    text: Option<String>,
    bytes: Vec<u8>,
}

fn row() -> impl Strategy<Value = Row> {
    let text = prop_oneof![
        2 => "[A-D]{0,3}".prop_map(Some),
        1 => "[a-c]{4}[0-9]{0,9}".prop_map(Some),
        1 => Just(None),
    ];
    let few = || prop_oneof![Just(3), Just(-3), any::<i32>()];
    let bytes = proptest::collection::vec(any::<u8>(), 0..6);
    let parts = (any::<Option<i64>>(), proptest::option::of(few()), few());
    (parts, text, bytes).prop_map(|((wide, narrow, there), text, bytes)| Row {
        wide,
        narrow,
        there,
        text,
        bytes,
    })
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[Option<T::T>],
    optional: bool,
) {
    let mut column = group.next_column().unwrap().unwrap();
    let levels: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let present: Vec<T::T> = values.iter().flatten().cloned().collect();
    let levels = optional.then_some(&levels[..]);
    let writer = column.typed::<T>();
    writer.write_batch(&present, levels, None).unwrap();
    column.close().unwrap();
}

fn write(path: &Path, properties: WriterProperties, groups: &[Vec<Row>]) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let texts = rows
            .iter()
            .map(|row| row.text.as_deref().map(ByteArray::from));
        let bytes = rows
            .iter()
            .map(|row| Some(ByteArray::from(row.bytes.clone())));
        column::<Int64Type>(
            &mut group,
            &rows.iter().map(|r| r.wide).collect::<Vec<_>>(),
            true,
        );
        column::<Int32Type>(
            &mut group,
            &rows.iter().map(|r| r.narrow).collect::<Vec<_>>(),
            true,
        );
        let there: Vec<_> = rows.iter().map(|row| Some(row.there)).collect();
        column::<Int32Type>(&mut group, &there, false);
        column::<ByteArrayType>(&mut group, &texts.collect::<Vec<_>>(), true);
        column::<ByteArrayType>(&mut group, &bytes.collect::<Vec<_>>(), false);
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Every codec, both versions of pages, with dictionaries and without, and every encoding that the
/// writer has.
fn properties(choice: usize, page_rows: usize) -> WriterProperties {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4,
    ];
    let integers = [
        Encoding::PLAIN,
        Encoding::DELTA_BINARY_PACKED,
        Encoding::BYTE_STREAM_SPLIT,
    ];
    let strings = [
        Encoding::PLAIN,
        Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY,
    ];
    let version = match choice % 2 {
        0 => WriterVersion::PARQUET_1_0,
        _ => WriterVersion::PARQUET_2_0,
    };
    let mut builder = WriterProperties::builder()
        .set_compression(codecs[choice / 2 % 5])
        .set_writer_version(version)
        .set_write_batch_size(32)
        .set_data_page_row_count_limit(page_rows)
        .set_dictionary_enabled((choice / 10).is_multiple_of(2));
    for (at, name) in NAMES.into_iter().enumerate() {
        let encodings = if at < 3 { integers } else { strings };
        builder = builder.set_column_encoding(name.into(), encodings[choice / 20 % 3]);
    }
    builder.build()
}

/// The values of the column, read in pieces of so many rows.
fn integers(file: &ParquetFile, group: usize, column: usize, piece: usize) -> Vec<Option<i64>> {
    let mut reader = file.values(group, column).unwrap();
    let rows = file.row_group_rows(group) as usize;
    let mut out = Vec::new();
    while out.len() < rows {
        reader
            .integers(piece.min(rows - out.len()), &mut out)
            .unwrap();
    }
    assert!(
        reader.integers(1, &mut Vec::new()).is_err(),
        "it has more rows"
    );
    out
}

fn texts(file: &ParquetFile, group: usize, column: usize, piece: usize) -> Vec<Option<Vec<u8>>> {
    let mut reader = file.values(group, column).unwrap();
    let rows = file.row_group_rows(group) as usize;
    let mut out = Vec::new();
    while out.len() < rows {
        reader.texts(piece.min(rows - out.len()), &mut out).unwrap();
    }
    assert!(
        reader.texts(1, &mut Vec::new()).is_err(),
        "it has more rows"
    );
    out.into_iter()
        .map(|text| text.map(|text| text.to_vec()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn every_value_and_every_null_reads_back(
        groups in proptest::collection::vec(proptest::collection::vec(row(), 1..300), 1..3),
        choice in 0usize..60,
        page_rows in 20usize..200,
        piece in 1usize..100,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        write(&path, properties(choice, page_rows), &groups);
        let file = ParquetFile::open(&path).unwrap();
        prop_assert_eq!(file.row_groups(), groups.len());
        for (i, rows) in groups.iter().enumerate() {
            let wide: Vec<_> = rows.iter().map(|row| row.wide).collect();
            prop_assert_eq!(integers(&file, i, 0, piece), wide);
            let narrow = rows.iter().map(|row| row.narrow.map(|v| i64::from(v as u32)));
            prop_assert_eq!(integers(&file, i, 1, piece), narrow.collect::<Vec<_>>());
            let there = rows.iter().map(|row| Some(i64::from(row.there)));
            prop_assert_eq!(integers(&file, i, 2, piece), there.collect::<Vec<_>>());
            let text = rows.iter().map(|row| row.text.clone().map(String::into_bytes));
            prop_assert_eq!(texts(&file, i, 3, piece), text.collect::<Vec<_>>());
            let bytes = rows.iter().map(|row| Some(row.bytes.clone()));
            prop_assert_eq!(texts(&file, i, 4, piece), bytes.collect::<Vec<_>>());
        }
    }

    /// Hostile bytes: whatever is changed in a file, reading it ends in values or in an error.
    #[test]
    fn a_changed_file_ends_in_values_or_an_error(
        rows in proptest::collection::vec(row(), 1..60),
        choice in 0usize..60,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        write(&path, properties(choice, 20), &[rows]);
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        parquet_damaged::read(tempfile::tempfile().unwrap(), &bytes);
    }
}

#[test]
fn the_schema_is_read_with_what_columns_mean() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kinds.parquet");
    let schema = "message kinds {
        required int64 at (TIMESTAMP(MICROS, true));
        optional int64 old (TIMESTAMP_MILLIS);
        required int32 small (INTEGER(8, true));
        required int64 money (DECIMAL(15, 2));
        required double real;
        optional group inner { repeated group list { required int32 element; } }
        required binary name (STRING);
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = File::create(&path).unwrap();
    let writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    writer.close().unwrap();
    let file = ParquetFile::open(&path).unwrap();
    let leaves: Vec<_> = file
        .leaves()
        .iter()
        .map(|leaf| {
            let levels = (leaf.definition_levels, leaf.repetition_levels);
            (leaf.path.as_str(), leaf.physical, leaf.meaning, levels)
        })
        .collect();
    let signed = true;
    let micros = Meaning::Timestamp {
        per_second: 1_000_000,
    };
    let millis = Meaning::Timestamp { per_second: 1_000 };
    let expected = [
        ("at", Physical::Int64, micros, (0, 0)),
        ("old", Physical::Int64, millis, (1, 0)),
        (
            "small",
            Physical::Int32,
            Meaning::Integer { bits: 8, signed },
            (0, 0),
        ),
        ("money", Physical::Int64, Meaning::Decimal, (0, 0)),
        ("real", Physical::Other, Meaning::Plain, (0, 0)),
        (
            "inner.list.element",
            Physical::Int32,
            Meaning::Plain,
            (2, 1),
        ),
        ("name", Physical::ByteArray, Meaning::Text, (0, 0)),
    ];
    assert_eq!(leaves, expected);
}

#[test]
fn a_changed_page_has_another_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checked.parquet");
    // The parquet crate writes no checksums; our own writer does.
    let fields = [Field {
        name: "name",
        kind: Kind::Varchar(30),
    }];
    let options = Options {
        compression: parquet_write::Compression::None,
        ..Options::default()
    };
    let layout = Arc::new(Layout::new(&fields, options).unwrap());
    let mut group = RowGroupWriter::new(&layout);
    let text = Values::Text {
        offsets: &[0, 13],
        bytes: b"a text of one",
    };
    group.append(&[text]).unwrap();
    let mut table = TableWriter::new(Vec::new(), layout).unwrap();
    table.append(group.finish().unwrap()).unwrap();
    let (mut bytes, _) = table.finish().unwrap();
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let mut texts = Vec::new();
        let file = ParquetFile::open(&path).unwrap();
        file.values(0, 0)?.texts(1, &mut texts).map(|()| texts)
    };
    assert_eq!(
        read(&bytes).unwrap()[0].as_deref(),
        Some(&b"a text of one"[..])
    );
    let at = bytes
        .windows(6)
        .position(|window| window == b"of one")
        .unwrap();
    bytes[at] ^= 1;
    let error = read(&bytes).unwrap_err().to_string();
    let named = error.contains("checksum") && error.contains("checked.parquet");
    assert!(named, "{error}");
}

/// Differences of 32-bit columns are modulo 2^32, so this one is -1.
#[test]
fn a_difference_that_wraps_around_in_32_bits_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wraps.parquet");
    let fields = [Field {
        name: "narrow",
        kind: Kind::Int32,
    }];
    let asked = ColumnOptions {
        encoding: parquet_write::Encoding::Delta,
        ..ColumnOptions::default()
    };
    let options = Options {
        columns: vec![("narrow".to_owned(), asked)],
        ..Options::default()
    };
    let layout = Arc::new(Layout::new(&fields, options).unwrap());
    let mut group = RowGroupWriter::new(&layout);
    let values = [i32::MIN, i32::MAX];
    group.append(&[Values::Int32(&values)]).unwrap();
    let mut table = TableWriter::new(Vec::new(), layout).unwrap();
    table.append(group.finish().unwrap()).unwrap();
    std::fs::write(&path, table.finish().unwrap().0).unwrap();

    let file = ParquetFile::open(&path).unwrap();
    let (column, kind) = file.column("narrow").unwrap();
    let mut read = [0i64; 2];
    file.ints(0, column, kind).unwrap().read(&mut read).unwrap();
    assert_eq!(read, values.map(i64::from));
}

//! Files written by the parquet crate's own writer, read back as codes and integers.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use dyno_formats::parquet_read::{BLOCK_ROWS, CodeBlock, ColumnKind, ParquetFile, ReadError};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

const SCHEMA: &str = "message spots {
    required int64 id (INTEGER(64, false));
    required int32 snr (INTEGER(8, true));
    required int32 distance (INTEGER(32, false));
    required binary callsign (STRING);
    optional int32 maybe;
}";

#[derive(Debug, Clone)]
struct Rows {
    id: Vec<i64>,
    snr: Vec<i32>,
    distance: Vec<i32>,
    callsign: Vec<String>,
}

fn write(path: &Path, properties: WriterPropertiesBuilder, groups: &[Rows]) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<Int64Type>()
            .write_batch(&rows.id, None, None)
            .unwrap();
        column.close().unwrap();
        for values in [&rows.snr, &rows.distance] {
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<Int32Type>()
                .write_batch(values, None, None)
                .unwrap();
            column.close().unwrap();
        }
        let calls: Vec<ByteArray> = rows.callsign.iter().map(|c| c.as_str().into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<ByteArrayType>()
            .write_batch(&calls, None, None)
            .unwrap();
        column.close().unwrap();
        let levels = vec![0; calls.len()];
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<Int32Type>()
            .write_batch(&[], Some(&levels), None)
            .unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn ints(file: &ParquetFile, group: usize, name: &str, rows: usize) -> Vec<i64> {
    let (column, kind) = file.column(name).unwrap();
    let mut out = vec![0; rows];
    let mut reader = file.ints(group, column, kind).unwrap();
    reader.read(&mut out).unwrap();
    assert!(
        reader.read(&mut [0]).is_err(),
        "{name} has more rows than were written"
    );
    out
}

fn strings(file: &ParquetFile, group: usize, name: &str) -> Result<Vec<String>, ReadError> {
    let mut reader = file.codes(group, file.column(name).unwrap().0)?;
    let (page, len) = reader.dictionary();
    let dictionary = dyno_formats::parquet_read::StringDictionary::new(page.clone(), len).unwrap();
    let text =
        |code: u32| String::from_utf8(dictionary.get(code as usize).unwrap().to_vec()).unwrap();
    let (mut out, mut codes) = (Vec::new(), [0; BLOCK_ROWS]);
    loop {
        match reader.next(&mut codes)? {
            CodeBlock::End => return Ok(out),
            CodeBlock::Same(rows, code) => out.extend(std::iter::repeat_n(text(code), rows)),
            CodeBlock::Codes(rows) => out.extend(codes[..rows].iter().map(|code| text(*code))),
        }
    }
}

fn rows() -> impl Strategy<Value = Rows> {
    let calls = prop_oneof!["[A-Z]{0,3}", "[A-D][0-9]", Just("K1ABC".to_owned())];
    let row = (any::<i64>(), -128..128i32, any::<i32>(), calls);
    let run = (row, prop_oneof![4 => 1usize..3, 1 => 1usize..900]);
    proptest::collection::vec(run, 1..60).prop_map(|runs| {
        let mut rows = Rows {
            id: vec![],
            snr: vec![],
            distance: vec![],
            callsign: vec![],
        };
        for ((id, snr, distance, callsign), count) in runs {
            for _ in 0..count {
                rows.id.push(id);
                rows.snr.push(snr);
                rows.distance.push(distance);
                rows.callsign.push(callsign.clone());
            }
        }
        rows
    })
}

fn properties(choice: usize, page_rows: usize) -> WriterPropertiesBuilder {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    let mut builder = WriterProperties::builder()
        .set_compression(codecs[choice % 4])
        .set_write_batch_size(64)
        .set_data_page_row_count_limit(page_rows);
    if choice & 4 != 0 {
        builder = builder.set_writer_version(WriterVersion::PARQUET_2_0);
    }
    for name in ["id", "snr", "distance"] {
        let encoding = [Encoding::DELTA_BINARY_PACKED, Encoding::PLAIN][choice >> 3 & 1];
        builder = builder
            .set_column_dictionary_enabled(name.into(), choice & 16 == 0)
            .set_column_encoding(name.into(), encoding);
    }
    builder
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_coding_reads_back(
        groups in proptest::collection::vec(rows(), 1..4),
        choice in 0usize..32,
        page_rows in 100usize..3000,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spots.parquet");
        write(&path, properties(choice, page_rows), &groups);
        let file = ParquetFile::map(&path).unwrap();
        prop_assert_eq!(file.row_groups(), groups.len());
        for (i, rows) in groups.iter().enumerate() {
            let len = rows.id.len();
            prop_assert_eq!(file.row_group_rows(i), len as u64);
            prop_assert_eq!(&ints(&file, i, "id", len), &rows.id);
            let snr: Vec<i64> = rows.snr.iter().map(|v| i64::from(*v)).collect();
            prop_assert_eq!(ints(&file, i, "snr", len), snr);
            let distance: Vec<i64> = rows.distance.iter().map(|v| i64::from(*v as u32)).collect();
            prop_assert_eq!(ints(&file, i, "distance", len), distance);
            prop_assert_eq!(&strings(&file, i, "callsign").unwrap(), &rows.callsign);
        }
    }
}

fn one_row(snr: i32) -> Rows {
    Rows {
        id: vec![7],
        snr: vec![snr],
        distance: vec![1],
        callsign: vec!["G8JNJ".into()],
    }
}

#[test]
fn kinds_follow_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.parquet");
    write(&path, WriterProperties::builder(), &[one_row(-3)]);
    let file = ParquetFile::open(&path).unwrap();
    assert_eq!(file.rows(), 1);
    assert_eq!(
        file.column("id"),
        Some((
            0,
            ColumnKind::Int {
                bits: 64,
                signed: false
            }
        ))
    );
    assert_eq!(
        file.column("snr"),
        Some((
            1,
            ColumnKind::Int {
                bits: 8,
                signed: true
            }
        ))
    );
    assert_eq!(file.column("callsign"), Some((3, ColumnKind::String)));
    assert_eq!(file.column("maybe"), None, "nullable");
    assert_eq!(file.column("absent"), None);
}

#[test]
fn values_outside_of_the_declared_type_are_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.parquet");
    write(&path, WriterProperties::builder(), &[one_row(128)]);
    let file = ParquetFile::map(&path).unwrap();
    let (column, kind) = file.column("snr").unwrap();
    let error = file
        .ints(0, column, kind)
        .unwrap()
        .read(&mut [0])
        .unwrap_err();
    assert!(error.to_string().contains("values 128 to 128"), "{error}");
}

#[test]
fn strings_without_a_dictionary_are_unsupported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.parquet");
    write(
        &path,
        WriterProperties::builder().set_dictionary_enabled(false),
        &[one_row(0)],
    );
    let file = ParquetFile::open(&path).unwrap();
    assert!(matches!(
        strings(&file, 0, "callsign"),
        Err(ReadError::Unsupported { .. })
    ));
}

#[test]
fn what_is_no_parquet_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("empty.parquet", &b""[..]),
        ("text.parquet", b"id,snr\n1,2\n3,4\n"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = ParquetFile::open(&path).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    let missing = ParquetFile::open(&folder.path().join("gone.parquet")).unwrap_err();
    assert!(missing.to_string().contains("gone.parquet"), "{missing}");
}

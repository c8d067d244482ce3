//! What arrow-rs reads back: values, statistics, page index.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int32Type, Int64Type};
use bytes::Bytes;
use dyno_formats::columns::Kind;
use dyno_formats::parquet_write::{ColumnOptions, Compression, Encoding, Options, PageVersion};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use proptest::prelude::*;

use super::tables::{Column, Data, Value, table, write};

fn read(file: Vec<u8>) -> Vec<Vec<Value>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).unwrap();
    let mut columns = vec![Vec::new(); builder.schema().fields().len()];
    for batch in builder.with_batch_size(1 << 20).build().unwrap() {
        let batch = batch.unwrap();
        for (values, array) in columns.iter_mut().zip(batch.columns()) {
            assert_eq!(array.null_count(), 0);
            values.extend((0..array.len()).map(|row| value(array, row)));
        }
    }
    columns
}

fn value(array: &dyn Array, row: usize) -> Value {
    match array.data_type() {
        DataType::Int32 => Value::Integer(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Date32 => Value::Integer(array.as_primitive::<Date32Type>().value(row).into()),
        DataType::Int64 => Value::Integer(array.as_primitive::<Int64Type>().value(row)),
        DataType::Decimal128(15, 2) => {
            Value::Integer(array.as_primitive::<Decimal128Type>().value(row) as i64)
        }
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        other => panic!("no column is {other}"),
    }
}

fn check(columns: &[Column], options: Options, batch_rows: usize, batches: usize) {
    let file = write(columns, options, batch_rows, batches);
    let read = read(file);
    for (column, read) in columns.iter().zip(read) {
        assert_eq!(read.len(), column.rows());
        for (row, read) in read.into_iter().enumerate() {
            assert_eq!(
                read,
                column.value(row),
                "{} of row {row}",
                column.field.name
            );
        }
    }
}

const CODECS: [Compression; 4] = [
    Compression::None,
    Compression::Snappy,
    Compression::Zstd(3),
    Compression::Lz4Raw,
];
const ENCODINGS: [Encoding; 4] = [
    Encoding::Auto,
    Encoding::Plain,
    Encoding::Dictionary,
    Encoding::Delta,
];

#[test]
fn every_form_survives_every_encoding_codec_and_page_version() {
    let columns = table(1500);
    for encoding in ENCODINGS {
        for compression in CODECS {
            for page_version in [PageVersion::V1, PageVersion::V2] {
                let asked = ColumnOptions {
                    compression: Some(compression),
                    encoding,
                };
                let names = columns.iter().map(|column| column.field.name.to_owned());
                let options = Options {
                    page_version,
                    columns: names.map(|name| (name, asked)).collect(),
                    ..Options::default()
                };
                check(&columns, options, 401, 2);
            }
        }
    }
}

#[test]
fn prefixes_large_batches_and_rows_without_end_survive() {
    let columns = table(70_000);
    let prefix = ["name", "comment", "mode", "clerk"];
    let options = Options {
        columns: prefix
            .map(|name| (name.into(), "prefix".parse().unwrap()))
            .to_vec(),
        ..Options::default()
    };
    check(&columns, options, 70_000, 1);
    check(&table(0), Options::default(), 1, 1);
}

#[test]
fn a_dictionary_that_grows_too_large_is_left_in_the_middle_of_a_chunk() {
    let rows = 160_000;
    // Few values at first, so that a dictionary is chosen, and then ever new ones.
    let texts = (0..rows).map(|i| {
        if i < 10_000 {
            format!("{}", i % 100)
        } else {
            format!("a text of its own, number {i}")
        }
    });
    let numbers = (0..rows as i64).map(|i| {
        if i < 10_000 {
            i % 5 * 7919
        } else {
            i * i * 7919 % 1_000_000_007
        }
    });
    let columns = [
        Column::new("text", Kind::Text, Data::Text(texts.collect())),
        Column::new("number", Kind::Int64, Data::Int64(numbers.collect())),
    ];
    check(&columns, Options::default(), 10_000, 100);
}

#[test]
fn text_that_must_stay_plain_stays_so_when_a_dictionary_grows_too_large() {
    let texts = (0..70_000).map(|i| match i {
        0..10_000 => format!("{}", i % 100),
        _ => format!("a text of its own, number {i}"),
    });
    let texts = Data::Text(texts.collect());
    let columns = [Column::new("text", Kind::Varchar(80), texts)];
    let options = Options {
        compression: Compression::None,
        plain_text: true,
        ..Options::default()
    };
    check(&columns, options.clone(), 10_000, 7);
    let file = Bytes::from(write(&columns, options, 10_000, 7));
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .unwrap();
    let used: Vec<_> = metadata.row_group(0).column(0).encodings().collect();
    let has = |encoding| used.contains(&encoding);
    assert!(has(parquet::basic::Encoding::RLE_DICTIONARY), "{used:?}");
    assert!(
        !has(parquet::basic::Encoding::DELTA_LENGTH_BYTE_ARRAY),
        "{used:?}"
    );
}

/// Texts of 65 bytes, of which the index keeps at most 64. The second one is cut in front of its
/// last character, so its lower bound lies below that of the first, although it is larger itself.
#[test]
fn pages_of_text_are_in_order_only_if_the_bounds_that_are_stored_are() {
    let front = "x".repeat(63);
    let texts = vec![format!("{front}za"), format!("{front}\u{e9}")];
    let columns = [Column::new("text", Kind::Text, Data::Text(texts))];
    let file = Bytes::from(write(&columns, Options::default(), 1, 2));
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(&file)
        .unwrap();
    let index = &metadata.column_index().unwrap()[0][0];
    let order = format!("{:?}", index.get_boundary_order());
    assert!(order.contains("UNORDERED"), "{order}");
}

#[test]
fn statistics_and_page_index_hold_what_the_pages_hold() {
    let columns = table(20_000);
    let (batch_rows, batches) = (1000, 7);
    let options = Options {
        sorted_by: vec!["key".into(), "line".into()],
        ..Options::default()
    };
    let file = Bytes::from(write(&columns, options, batch_rows, batches));
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(&file)
        .unwrap();
    assert_eq!(metadata.num_row_groups(), 3);
    let mut first = 0;
    for (ordinal, group) in metadata.row_groups().iter().enumerate() {
        let sorting = group.sorting_columns().unwrap();
        assert_eq!(
            sorting.iter().map(|s| s.column_idx).collect::<Vec<_>>(),
            [0, 1]
        );
        let rows = group.num_rows() as usize;
        for (place, column) in columns.iter().enumerate() {
            let values: Vec<Value> = (first..first + rows).map(|row| column.value(row)).collect();
            check_statistics(group.column(place).statistics().unwrap(), &values, column);
            check_pages(&metadata, ordinal, place, &values, batch_rows);
        }
        first += rows;
    }
}

fn check_statistics(statistics: &Statistics, values: &[Value], column: &Column) {
    let name = column.field.name;
    let (min, max) = (values.iter().min().unwrap(), values.iter().max().unwrap());
    let stored = |bytes: &[u8]| match (statistics, min) {
        (Statistics::Int32(_), _) => {
            Value::Integer(i32::from_le_bytes(bytes.try_into().unwrap()).into())
        }
        (_, Value::Integer(_)) => Value::Integer(i64::from_le_bytes(bytes.try_into().unwrap())),
        _ => Value::Text(String::from_utf8(bytes.to_vec()).unwrap()),
    };
    let low = stored(statistics.min_bytes_opt().unwrap());
    let high = stored(statistics.max_bytes_opt().unwrap());
    assert!(low <= *min && *max <= high, "{name}: {low:?} to {high:?}");
    assert_eq!(statistics.min_is_exact(), low == *min, "{name}");
    assert_eq!(statistics.max_is_exact(), high == *max, "{name}");
    assert_eq!(statistics.null_count_opt(), Some(0));
    let is_coded = !matches!(
        column.data,
        Data::Int64(_) | Data::Int32(_) | Data::Text(_) | Data::Slices(_)
    );
    if let Some(distinct) = statistics.distinct_count_opt() {
        let all: std::collections::HashSet<_> = values.iter().map(|v| format!("{v:?}")).collect();
        assert_eq!(distinct, all.len() as u64, "{name}");
    } else {
        assert!(!is_coded, "{name} has no distinct count");
    }
}

fn check_pages(
    metadata: &ParquetMetaData,
    group: usize,
    column: usize,
    values: &[Value],
    batch_rows: usize,
) {
    let index = &metadata.column_index().unwrap()[group][column];
    let places = metadata.offset_index().unwrap()[group][column].page_locations();
    assert_eq!(places.len(), values.len().div_ceil(batch_rows));
    for (page, (place, values)) in places.iter().zip(values.chunks(batch_rows)).enumerate() {
        assert_eq!(place.first_row_index as usize, page * batch_rows);
        let (low, high) = match index {
            ColumnIndexMetaData::INT32(index) => (
                index.min_value(page).map(|&v| Value::Integer(v.into())),
                index.max_value(page).map(|&v| Value::Integer(v.into())),
            ),
            ColumnIndexMetaData::INT64(index) => (
                index.min_value(page).map(|&v| Value::Integer(v)),
                index.max_value(page).map(|&v| Value::Integer(v)),
            ),
            ColumnIndexMetaData::BYTE_ARRAY(index) => {
                let text = |v: &[u8]| Value::Text(String::from_utf8(v.to_vec()).unwrap());
                (
                    index.min_value(page).map(text),
                    index.max_value(page).map(text),
                )
            }
            other => panic!("no column has an index like {other:?}"),
        };
        let (min, max) = (values.iter().min().unwrap(), values.iter().max().unwrap());
        assert!(
            low.unwrap() <= *min && *max <= high.unwrap(),
            "column {column}, page {page}"
        );
    }
    let is_ascending = format!("{:?}", index.get_boundary_order()).contains("ASCENDING");
    if column == 0 {
        assert!(is_ascending, "the key's pages are in order");
    }
}

fn data() -> impl Strategy<Value = (Kind, Data)> {
    let texts = || prop::collection::vec("[a-c]{0,3}|.{0,20}", 300);
    let words: Vec<String> = (0..200).map(|i| format!("{}w", i * 7 % 200)).collect();
    let wide_words: Vec<String> = (0..3000).map(|i| format!("word {i}")).collect();
    prop_oneof![
        prop::collection::vec(any::<i64>(), 300).prop_map(|v| (Kind::Int64, Data::Int64(v))),
        prop::collection::vec(any::<i32>(), 300).prop_map(|v| (Kind::Int32, Data::Int32(v))),
        (any::<i64>(), prop::collection::vec(0u32..64, 300)).prop_map(|(from, shifts)| {
            let values = shifts.iter().map(|&s| from.wrapping_add(1 << s));
            (Kind::Int64, Data::Int64(values.collect()))
        }),
        prop::collection::vec((0i32..4, 1usize..70), 300).prop_map(|runs| {
            let values = runs.iter().flat_map(|&(v, n)| vec![v; n]).take(300);
            (Kind::Int32, Data::Int32(values.collect()))
        }),
        texts().prop_map(|v| (Kind::Text, Data::Text(v))),
        texts().prop_map(|v| (Kind::Varchar(80), Data::Slices(v))),
        prop::collection::vec(0u8..200, 300)
            .prop_map(move |v| (Kind::Text, Data::Codes8(v, words.clone()))),
        prop::collection::vec(0u32..3000, 300)
            .prop_map(move |v| (Kind::Text, Data::Codes32(v, wide_words.clone()))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_batches_survive(
        columns in prop::collection::vec(data(), 1..4),
        encoding in prop::sample::select(&ENCODINGS),
        compression in prop::sample::select(&CODECS),
        is_v2 in any::<bool>(),
        batch_rows in 1usize..310,
        batches in 1usize..9,
    ) {
        let names = ["a", "b", "c"];
        let columns: Vec<Column> = columns
            .into_iter()
            .zip(names)
            .map(|((kind, data), name)| Column::new(name, kind, data))
            .collect();
        let asked = ColumnOptions { compression: None, encoding };
        let options = Options {
            compression,
            page_version: if is_v2 { PageVersion::V2 } else { PageVersion::V1 },
            columns: columns.iter().map(|c| (c.field.name.to_owned(), asked)).collect(),
            ..Options::default()
        };
        check(&columns, options, batch_rows, batches);
    }
}

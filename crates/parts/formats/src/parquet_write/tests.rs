use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int8Type, Int64Type, TimestampMillisecondType, UInt64Type};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;
use std::sync::Arc;

use super::*;
use crate::columns::{self, Codes, Kind, Values, Words};

fn fields() -> Vec<Field> {
    vec![
        Field {
            name: "id",
            logical: Logical::Integer {
                bits: 64,
                signed: false,
            },
            nullable: false,
            id: None,
        },
        Field {
            name: "at",
            logical: Logical::TimestampMillis,
            nullable: false,
            id: None,
        },
        Field {
            name: "call",
            logical: Logical::Text,
            nullable: false,
            id: None,
        },
        Field {
            name: "snr",
            logical: Logical::Integer {
                bits: 8,
                signed: true,
            },
            nullable: false,
            id: None,
        },
        Field {
            name: "plain",
            logical: Logical::Integer {
                bits: 64,
                signed: true,
            },
            nullable: false,
            id: None,
        },
    ]
}

/// One row group: `words` is the dictionary of `call`, `calls` its codes.
struct Group {
    ids: Vec<i64>,
    calls: Vec<u32>,
    snr: Vec<u32>,
}

fn write(words: &[String], groups: &[Group]) -> Bytes {
    let mut writer =
        FileWriter::new(Vec::new(), fields(), vec![("key".into(), "value".into())]).unwrap();
    let mut plain = Vec::new();
    for word in words {
        plain.extend((word.len() as u32).to_le_bytes());
        plain.extend(word.as_bytes());
    }
    let snr_values: Vec<u8> = (-3i32..5).flat_map(i32::to_le_bytes).collect();
    for group in groups {
        let mut columns: Vec<Column> = fields().iter().map(|_| Column::default()).collect();
        let times: Vec<i64> = group.ids.iter().map(|id| id / 3).collect();
        columns[0].delta(&group.ids, None);
        columns[1].delta(&times, None);
        let dictionary = Dictionary {
            plain: &plain,
            values: words.len(),
        };
        columns[2].dictionary(dictionary, &group.calls, None);
        columns[3].dictionary(
            Dictionary {
                plain: &snr_values,
                values: 8,
            },
            &group.snr,
            None,
        );
        columns[4].plain_i64(&group.ids, None);
        writer.row_group(&columns).unwrap();
    }
    let (bytes, summary) = writer.finish().unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    bytes.into()
}

fn check(words: &[String], groups: &[Group]) {
    let file = write(words, groups);
    let reader = SerializedFileReader::new(file.clone()).unwrap();
    let meta = reader.metadata().file_metadata();
    assert_eq!(
        meta.num_rows(),
        groups.iter().map(|g| g.ids.len() as i64).sum::<i64>()
    );
    assert_eq!(meta.key_value_metadata().unwrap()[0].key, "key");

    let batches: Vec<RecordBatch> = ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .with_batch_size(1 << 30)
        .build()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mut expected = groups
        .iter()
        .flat_map(|g| (0..g.ids.len()).map(move |i| (g, i)));
    for batch in &batches {
        let id = batch.column(0).as_primitive::<UInt64Type>();
        let at = batch.column(1).as_primitive::<TimestampMillisecondType>();
        let call = batch.column(2).as_string::<i32>();
        let snr = batch.column(3).as_primitive::<Int8Type>();
        let plain = batch.column(4).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let (group, i) = expected.next().unwrap();
            assert_eq!(id.value(row), group.ids[i] as u64);
            assert_eq!(at.value(row), group.ids[i] / 3);
            assert_eq!(call.value(row), words[group.calls[i] as usize]);
            assert_eq!(i32::from(snr.value(row)), group.snr[i] as i32 - 3);
            assert_eq!(plain.value(row), group.ids[i]);
        }
    }
    assert!(expected.next().is_none(), "rows are missing");
}

fn group(rows: usize, codes: u32, step: impl Fn(usize) -> i64) -> Group {
    let mut id = 7_000_000_000i64;
    Group {
        ids: (0..rows)
            .map(|i| {
                id = id.wrapping_add(step(i));
                id
            })
            .collect(),
        calls: (0..rows as u32)
            .map(|i| i.wrapping_mul(2_654_435_761) % codes)
            .collect(),
        snr: (0..rows as u32)
            .map(|i| if i % 700 < 500 { 3 } else { i % 8 })
            .collect(),
    }
}

#[test]
fn arrow_reads_what_was_written_for_every_code_width() {
    for bits in 0..=18 {
        let codes = (1usize << bits).max(1);
        let words: Vec<String> = (0..codes).map(|i| format!("K{i}")).collect();
        check(
            &words,
            &[
                group(1500, codes as u32, |i| (i % 5) as i64),
                group(33, codes as u32, |_| 1),
            ],
        );
    }
}

#[test]
fn pages_row_groups_and_extreme_differences_survive() {
    let words: Vec<String> = ["", "K1ABC", "a long one with <brackets> and more than 16"]
        .map(String::from)
        .into();
    check(
        &words,
        &[group(PAGE_ROWS + 17, 3, |i| i as i64), group(1, 3, |_| 0)],
    );
    check(
        &words,
        &[group(1000, 3, |i| {
            if i % 2 == 0 {
                i64::MAX / 2
            } else {
                -i64::MAX / 2 + i as i64
            }
        })],
    );
    check(&words, &[group(300, 3, |i| 1 << (i % 40))]);
    check(&words, &[]);
}

#[test]
fn a_reader_goes_by_the_page_index_to_the_rows_it_wants() {
    let rows = 3 * PAGE_ROWS + 100;
    let words: Vec<String> = ["a", "b", "c"].map(String::from).into();
    let expected = group(rows, 3, |i| (i % 3) as i64);
    let file = write(&words, &[group(5, 3, |_| 1), expected]);
    let wanted = PAGE_ROWS + 7..2 * PAGE_ROWS + 9;
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    let metadata = reader.metadata().clone();
    let reader = reader
        .with_row_groups(vec![1])
        .with_row_selection(RowSelection::from(vec![
            RowSelector::skip(wanted.start),
            RowSelector::select(wanted.len()),
        ]))
        .with_batch_size(rows)
        .build()
        .unwrap();
    let expected = group(rows, 3, |i| (i % 3) as i64);
    let mut at = wanted;
    for batch in reader.map(Result::unwrap) {
        let id = batch.column(0).as_primitive::<UInt64Type>();
        let call = batch.column(2).as_string::<i32>();
        for row in 0..batch.num_rows() {
            let place = at.next().unwrap();
            assert_eq!(id.value(row), expected.ids[place] as u64);
            assert_eq!(call.value(row), words[expected.calls[place] as usize]);
        }
    }
    assert!(at.is_empty());

    for (column, page_rows) in [(1, DELTA_PAGE_ROWS), (2, PAGE_ROWS)] {
        let places = metadata.offset_index().unwrap()[1][column].page_locations();
        let firsts = places.iter().map(|place| place.first_row_index as usize);
        assert!(firsts.eq((0..rows).step_by(page_rows)), "column {column}");
    }
    let ColumnIndexMetaData::INT64(times) = &metadata.column_index().unwrap()[1][1] else {
        panic!("times have an index");
    };
    for (page, ids) in expected.ids.chunks(DELTA_PAGE_ROWS).enumerate() {
        assert_eq!(times.min_value(page), Some(&(ids[0] / 3)));
        assert_eq!(times.max_value(page), Some(&(ids[ids.len() - 1] / 3)));
    }
    // Codes have no order, so nothing is said of them.
    let codes = &metadata.column_index().unwrap()[1][2];
    assert!(matches!(codes, ColumnIndexMetaData::NONE), "{codes:?}");
}

proptest! {
    #[test]
    fn runs_of_any_length_survive(runs in proptest::collection::vec((0u32..4, 1usize..200), 0..40)) {
        let calls: Vec<u32> = runs.iter().flat_map(|&(code, n)| vec![code; n]).collect();
        let words: Vec<String> = ["a", "b", "c", "d"].map(String::from).into();
        let rows = calls.len();
        check(&words, &[Group { calls, ..group(rows, 4, |i| i as i64) }]);
    }
}

/// Values with gaps, in pages of several kinds, as arrow-rs reads them.
fn check_nulls(rows: &[Option<u16>]) {
    let field = |name, logical| Field {
        name,
        logical,
        nullable: true,
        id: None,
    };
    let fields = vec![
        field(
            "number",
            Logical::Integer {
                bits: 64,
                signed: true,
            },
        ),
        field("coded", Logical::Text),
        field("text", Logical::Text),
    ];
    let words: Vec<String> = (0..7).map(|word| format!("word {word}")).collect();
    let plain: Vec<u8> = words
        .iter()
        .flat_map(|word| [&(word.len() as u32).to_le_bytes(), word.as_bytes()].concat())
        .collect();
    let present = || rows.iter().map(Option::is_some);
    let values: Vec<i64> = rows.iter().flatten().map(|&value| value.into()).collect();
    let codes: Vec<u32> = values.iter().map(|value| (value % 7) as u32).collect();
    let (mut offsets, mut text) = (vec![0], Vec::new());
    for value in &values {
        text.extend(format!("{value}é").bytes());
        offsets.push(text.len() as u32);
    }
    let mut columns: Vec<Column> = fields.iter().map(|_| Column::default()).collect();
    columns
        .iter_mut()
        .for_each(|column| column.present(present()));
    columns[0].delta(&values, None);
    let dictionary = Dictionary {
        plain: &plain,
        values: words.len(),
    };
    columns[1].dictionary(dictionary, &codes, None);
    columns[2]
        .plain_text(&offsets, &text, Compression::Zstd(1), None)
        .unwrap();
    let mut writer = FileWriter::new(Vec::new(), fields, Vec::new()).unwrap();
    writer.row_group(&columns).unwrap();
    let (bytes, summary) = writer.finish().unwrap();
    assert_eq!(summary.rows, rows.len() as u64);
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
    let mut read = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let numbers = batch.column(0).as_primitive::<Int64Type>().clone();
        let (coded, text) = (
            batch.column(1).as_string::<i32>(),
            batch.column(2).as_string::<i32>(),
        );
        for ((number, coded), text) in numbers.iter().zip(coded).zip(text) {
            assert_eq!(coded, number.map(|n| &*words[(n % 7) as usize]));
            assert_eq!(text, number.map(|n| format!("{n}é")).as_deref());
            read.push(number.map(|n| n as u16));
        }
    }
    assert_eq!(read, rows);
}

proptest! {
    #[test]
    fn rows_without_a_value_stay_without(rows in prop::collection::vec(any::<Option<u16>>(), 1..300)) {
        check_nulls(&rows);
    }
}

#[test]
fn rows_without_a_value_over_several_pages() {
    let rows: Vec<Option<u16>> = (0..3 * TEXT_PAGE_ROWS as u32 + 5)
        .map(|row| (row % 3 != 0).then_some(row as u16))
        .collect();
    check_nulls(&rows);
    check_nulls(&vec![None; PAGE_ROWS + 1]);
    check_nulls(&vec![Some(9); PAGE_ROWS + 1]);
}

#[test]
fn a_row_group_that_cannot_end_leaves_no_rows_for_the_next_one() {
    let field = |name, kind| columns::Field { name, kind };
    let fields = [field("key", Kind::Int64), field("text", Kind::Text)];
    let layout = Arc::new(Layout::new(&fields, Options::default()).unwrap());
    let mut group = RowGroupWriter::new(&layout);
    // Together more than a page may have, and so more than its header can count.
    let words = Words::new(["x".repeat(33 << 20), "y".repeat(33 << 20)]);
    let codes = Codes::U8(&[0, 1]);
    let words = Values::CodedText {
        codes,
        words: &words,
    };
    group.append(&[Values::Int64(&[1, 2]), words]).unwrap();
    let error = group.finish().unwrap_err();
    let named = matches!(error, Error::PageTooLarge { column: "text", .. });
    assert!(named, "{error}");
    assert_eq!((group.rows(), group.encoded_bytes()), (0, 0));

    let (offsets, bytes) = (&[0, 1][..], &b"a"[..]);
    let text = Values::Text { offsets, bytes };
    group.append(&[Values::Int64(&[3]), text]).unwrap();
    let mut table = TableWriter::new(Vec::new(), layout).unwrap();
    table.append(group.finish().unwrap()).unwrap();
    let (bytes, summary) = table.finish().unwrap();
    assert_eq!(summary.rows, 1);
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
    let batch = reader.build().unwrap().next().unwrap().unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[3]);
    assert_eq!(batch.column(1).as_string::<i32>().value(0), "a");
}

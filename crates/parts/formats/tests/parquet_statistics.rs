//! Statistics of footers that the parquet crate has written, against the values themselves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use dyno_formats::parquet_read::{ColumnStatistics, FileStatistics};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use proptest::prelude::*;

type Rows = Vec<(i64, Option<i32>, String)>;

/// Writes the groups as row groups and reads the footer.
fn statistics(groups: &[Rows], level: EnabledStatistics) -> FileStatistics {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let properties = WriterProperties::builder().set_statistics_enabled(level);
    // Whole texts, so that bounds are values.
    let properties = properties.set_statistics_truncate_length(None).build();
    let batch = |rows: &Rows| {
        let longs = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
        let ints: Int32Array = rows.iter().map(|row| row.1).collect();
        let texts = StringArray::from_iter_values(rows.iter().map(|row| &row.2));
        let unsigned = UInt64Array::from_iter_values(rows.iter().map(|row| row.0 as u64));
        RecordBatch::try_from_iter_with_nullable([
            ("long", Arc::new(longs) as ArrayRef, false),
            ("int", Arc::new(ints), true),
            ("text", Arc::new(texts), false),
            ("unsigned", Arc::new(unsigned), false),
        ])
        .unwrap()
    };
    let schema = batch(&Vec::new()).schema();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
    for rows in groups {
        writer.write(&batch(rows)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    FileStatistics::read(&path).unwrap()
}

fn column<'a>(found: &'a FileStatistics, name: &str) -> &'a ColumnStatistics {
    found
        .columns
        .iter()
        .find(|column| column.name == name)
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn bounds_and_counts_are_those_of_all_values(
        groups in prop::collection::vec(
            prop::collection::vec((any::<i64>(), any::<Option<i32>>(), "[a-zé]{0,6}"), 1..20),
            1..5,
        ),
    ) {
        let found = statistics(&groups, EnabledStatistics::Chunk);
        let all: Rows = groups.concat();
        prop_assert_eq!(found.rows, all.len() as u64);

        let ends = all.iter().map(|row| row.0).min().zip(all.iter().map(|row| row.0).max());
        let plain = |(min, max): (i64, i64)| (min.to_le_bytes().to_vec(), max.to_le_bytes().to_vec());
        prop_assert_eq!(&column(&found, "long").bounds, &ends.map(plain));

        let ints = || all.iter().filter_map(|row| row.1);
        let plain = |(min, max): (i32, i32)| (min.to_le_bytes().to_vec(), max.to_le_bytes().to_vec());
        let int = column(&found, "int");
        prop_assert_eq!(&int.bounds, &ints().min().zip(ints().max()).map(plain));
        prop_assert_eq!(int.nulls, Some((all.len() - ints().count()) as u64));
        prop_assert_eq!(int.values, all.len() as u64);

        let texts = || all.iter().map(|row| row.2.clone().into_bytes());
        prop_assert_eq!(&column(&found, "text").bounds, &texts().min().zip(texts().max()));
        // Their order is not that of the stored integers.
        prop_assert_eq!(&column(&found, "unsigned").bounds, &None);
    }
}

#[test]
fn a_footer_without_statistics_has_no_bounds() {
    let rows = vec![(1, Some(2), "a".to_owned())];
    let found = statistics(&[rows], EnabledStatistics::None);
    assert_eq!(
        (found.rows, column(&found, "long").bounds.clone()),
        (1, None)
    );
    assert!(column(&found, "long").bytes > 0);
}

#[test]
fn a_file_that_is_not_parquet_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"not a Parquet file at all").unwrap();
    let said = FileStatistics::read(file.path()).unwrap_err().to_string();
    assert!(said.contains("it is not a Parquet file"), "{said}");
}

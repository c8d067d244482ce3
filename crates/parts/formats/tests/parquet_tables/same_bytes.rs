//! The bytes of a file depend on its rows and options, not on who encoded which row group.

use std::sync::Arc;

use dyno_formats::columns::{Field, Values};
use dyno_formats::parquet_write::{Layout, Options, RowGroupWriter, TableWriter};

use super::tables::{each_batch, table, write};

#[test]
fn writers_that_take_turns_make_the_same_file() {
    let columns = table(9000);
    let fields: Vec<Field> = columns.iter().map(|column| column.field).collect();
    let layout = Arc::new(Layout::new(&fields, Options::default()).unwrap());
    let mut writers = [RowGroupWriter::new(&layout), RowGroupWriter::new(&layout)];
    let mut file = TableWriter::new(Vec::new(), Arc::clone(&layout)).unwrap();
    let mut turn = 0;
    each_batch(&columns, 1000, |batch| {
        // The third row group comes after one that failed.
        if turn == 2 {
            let wrong = [Values::Int64(&[1])];
            assert!(writers[0].append(&wrong).is_err());
        }
        let writer = &mut writers[turn % 2];
        writer.append(batch).unwrap();
        assert_eq!(writer.rows(), 1000);
        let about = writer.encoded_bytes();
        let group = writer.finish().unwrap();
        assert!(group.bytes() <= about + 20_000 && group.rows() == 1000);
        file.append(group).unwrap();
        turn += 1;
    });
    let (bytes, _) = file.finish().unwrap();
    assert!(bytes == write(&columns, Options::default(), 1000, 1));
}

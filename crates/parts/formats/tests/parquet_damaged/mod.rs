//! Reads a Parquet file that may be anything: what a test and a fuzz target do with hostile bytes.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use dyno_formats::parquet_read::{BLOCK_ROWS, ParquetFile};

/// Rows that are read of a row group. A footer may promise any number.
const ROWS_MAX: usize = 1000;

/// Reads all columns in each way that the reader has. It ends in values or in errors; a panic, or
/// memory that the bytes cannot account for, is a fault.
pub fn read(mut file: File, bytes: &[u8]) {
    file.write_all(bytes).expect("room");
    file.rewind().expect("a plain file");
    let Ok(file) = ParquetFile::from_file(Path::new("damaged.parquet"), file) else {
        return;
    };
    for group in 0..file.row_groups().min(4) {
        let rows = file.row_group_rows(group).min(ROWS_MAX as u64) as usize;
        for (column, leaf) in file.leaves().iter().enumerate() {
            if let Ok(mut values) = file.values(group, column) {
                let _ = values.integers(rows, &mut Vec::new());
                let _ = values.texts(rows, &mut Vec::new());
            }
            if let Ok(mut codes) = file.codes(group, column) {
                let _ = codes.next(&mut [0; BLOCK_ROWS]);
            }
            if let Some((column, kind)) = file.column(&leaf.path)
                && let Ok(mut ints) = file.ints(group, column, kind)
            {
                let _ = ints.read(&mut vec![0; rows]);
            }
        }
    }
}

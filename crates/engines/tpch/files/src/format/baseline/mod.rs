//! The ordinary way: rows into Arrow arrays, value by value, and those into the library's own writers.

mod csv;
mod parquet;
mod tbl;

pub(crate) use csv::ArrowCsv;
pub(crate) use parquet::ArrowParquet;
pub(crate) use tbl::PlainTbl;

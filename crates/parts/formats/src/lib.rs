//! File formats: columns of values or codes into pages.

pub mod parquet_write;

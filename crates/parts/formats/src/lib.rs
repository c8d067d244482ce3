//! Columns of values or codes into Parquet pages, and out of them.

pub mod parquet_read;

//! File formats: columns of values or codes into pages, and out of them.

pub mod columns;
pub mod orc_write;
pub mod parquet_read;
pub mod parquet_write;
pub mod text_write;

//! Inflate, the codecs of pages, and the compressed frames of ClickHouse.

pub mod clickhouse;
pub mod dictionary;
pub mod inflate;
pub mod lz4;
pub mod repeat;
pub mod zstd;

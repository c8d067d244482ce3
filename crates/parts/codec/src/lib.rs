//! Inflate, and the codecs and checksums of pages.

pub mod checksum;
pub mod inflate;
pub mod lz4;
pub mod repeat;
pub mod zstd;

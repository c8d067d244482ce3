//! Streams compressed radio-spot archives into a columnar table.

pub mod generate;

//! A Parquet writer that takes columns as codes and integers, never as rows or strings.
//!
//! The caller encodes a row group's columns one by one ([`Column::dictionary`],
//! [`Column::delta`], [`Column::plain_i64`]) and hands them to [`FileWriter`], which frames them as
//! data pages of version 1 (parquet-format 2.9). Columns are REQUIRED: there are no levels.

mod column;
mod delta;
mod file;
mod hybrid;
mod schema;
mod thrift;
mod varint;

pub use column::{Bounds, Column, Dictionary, PAGE_ROWS};
pub use file::{FileSummary, FileWriter};
pub use hybrid::bits_for;
pub use schema::{Field, Logical};

#[cfg(test)]
mod tests;

//! A Parquet writer that takes columns as codes and integers, never as rows.
//!
//! For batches of rows there are three pieces: a [`Layout`] says what the file is, a
//! [`RowGroupWriter`] on each thread encodes batches into [`RowGroup`]s, and a [`TableWriter`] puts
//! these into the file, in the caller's order. The bytes of a file depend only on its rows, where
//! its row groups and batches end, and its options.
//!
//! A caller that has whole row groups and knows their encodings better encodes the columns one by
//! one ([`Column::dictionary`], [`Column::delta`], [`Column::plain_i64`]) and gives them to
//! [`FileWriter`].
//!
//! Columns of batches are REQUIRED: there are no levels. Those encoded one by one may be OPTIONAL
//! ([`Column::present`]). Files follow parquet-format 2.12, of which readers need the encodings of
//! 2.0 at most.

mod by_code;
mod choose;
mod chunk;
mod column;
mod compress;
mod delta;
mod encode;
mod error;
mod extent;
mod file;
mod flat;
mod footer;
mod group;
mod hybrid;
mod intern;
mod layout;
mod options;
mod order;
mod pack;
mod page;
mod page_index;
mod schema;
mod spare;
mod table;
mod text;
mod thrift;
mod varint;
mod whole;

pub use column::{Bounds, Column, DELTA_PAGE_ROWS, Dictionary, PAGE_ROWS, TEXT_PAGE_ROWS};
pub use error::Error;
pub use file::{FileSummary, FileWriter};
pub use group::{RowGroup, RowGroupWriter};
pub use hybrid::bits_for;
pub use layout::Layout;
pub use options::{ColumnOptions, Compression, Encoding, Options, PageVersion};
pub use schema::{Field, Logical, number};
pub use table::TableWriter;

#[cfg(test)]
mod tests;

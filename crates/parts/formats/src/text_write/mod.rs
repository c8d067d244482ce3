//! Writes batches of columns as text: `|` behind every value as dbgen does, or CSV.
//!
//! A [`Layout`] says what a file's columns are and how they are printed. Each thread fills a
//! [`BlockWriter`] and gets [`Block`]s of whole lines, which a [`FileWriter`] writes one after the
//! other.
//!
//! ```
//! use dyno_formats::columns::{Field, Kind, Values};
//! use dyno_formats::text_write::{BlockWriter, Column, FileWriter, Layout, Options, Quote};
//! use std::sync::Arc;
//!
//! let kind = Kind::Decimal { precision: 15, scale: 2 };
//! let price = Column::new(Field { name: "price", kind });
//! let remark = Column::new(Field { name: "remark", kind: Kind::Text }).quote(Quote::Always);
//! let layout = Arc::new(Layout::new(vec![price, remark], Options::csv())?);
//!
//! let mut lines = BlockWriter::new(&layout);
//! lines.append(&[
//!     Values::Int64(&[-5, 1250]),
//!     Values::Text { offsets: &[0, 4, 12], bytes: b"lateon \"time\"" },
//! ])?;
//! let mut file = FileWriter::new(Vec::new(), Arc::clone(&layout))?;
//! file.append(&lines.finish())?;
//! let (bytes, summary) = file.finish()?;
//! assert_eq!(bytes, b"price,remark\n-0.05,\"late\"\n12.50,\"on \"\"time\"\n");
//! assert_eq!(summary.rows, 2);
//! # Ok::<(), dyno_formats::text_write::TextError>(())
//! ```
//!
//! Two ways lead from values to text. `careful` is the obvious one, value by value, and only it
//! quotes and refuses. `tile` is the fast one, for a few dozen rows at a time. It leaves rows that
//! need quotes, or cannot be printed, to the careful one.

mod block;
mod careful;
mod cells;
mod days;
mod dictionary;
mod digits;
mod error;
mod file;
mod layout;
mod passages;
#[cfg(test)]
mod tests;
mod tile;

pub use block::{Block, BlockWriter};
pub use error::{Result, TextError};
pub use file::{FileSummary, FileWriter};
pub use layout::{Column, Dialect, Layout, Options, Quote};

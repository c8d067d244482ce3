//! File formats, which turn columns of values or codes into pages and back.
//!
//! Writers take batches of columns ([`columns`]). A column is integers, text, or codes with the
//! dictionary that they are for, so that a code need not become a string and the string a code
//! again. Parquet ([`parquet_write`]), ORC ([`orc_write`]) and text ([`text_write`]) take the same
//! batches and have the same three pieces: a layout, which is checked once and shared; a writer of
//! groups on each thread; and a writer of the file, which takes the groups in their order.
//!
//! ```
//! use std::sync::Arc;
//! use dyno_formats::columns::{Codes, Field, Kind, Values, Words};
//! use dyno_formats::parquet_write::{Layout, Options, RowGroupWriter, TableWriter};
//!
//! let fields = [
//!     Field { name: "key", kind: Kind::Int64 },
//!     Field { name: "price", kind: Kind::Decimal { precision: 15, scale: 2 } },
//!     Field { name: "mode", kind: Kind::Char(10) },
//! ];
//! let options = Options { sorted_by: vec!["key".to_owned()], ..Options::default() };
//! let layout = Arc::new(Layout::new(&fields, options)?);
//! let words = Words::new(["AIR", "TRUCK"]);
//!
//! // On any thread, one group after the other.
//! let mut group = RowGroupWriter::new(&layout);
//! group.append(&[
//!     Values::Int64(&[1, 2, 3]),
//!     Values::Int64(&[1999, 250, 100_000]),
//!     Values::CodedText { codes: Codes::U8(&[1, 0, 1]), words: &words },
//! ])?;
//!
//! let mut file = TableWriter::new(Vec::new(), Arc::clone(&layout))?;
//! file.append(group.finish()?)?;
//! let (bytes, summary) = file.finish()?;
//! assert_eq!((summary.rows, summary.bytes), (3, bytes.len() as u64));
//! assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`parquet_read`] returns the codes of a file's dictionaries, for operators that group by them.

pub mod columns;
pub mod orc_write;
pub mod parquet_read;
pub mod parquet_write;
pub mod text_write;

mod thrift;
mod vectorised;

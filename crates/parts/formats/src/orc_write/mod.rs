//! An ORC writer that takes batches of columns: integers, codes and slices, never rows or strings.
//!
//! ```
//! use std::sync::Arc;
//! use dyno_formats::columns::{Codes, Field, Kind, Values, Words};
//! use dyno_formats::orc_write::{FileWriter, Layout, Options, StripeWriter};
//!
//! let fields = [
//!     Field { name: "key", kind: Kind::Int64 },
//!     Field { name: "mode", kind: Kind::Char(10) },
//! ];
//! let layout = Arc::new(Layout::new(&fields, Options::default())?);
//! let mut file = FileWriter::new(Vec::new(), layout.clone())?;
//! let mut stripe = StripeWriter::new(&layout)?;
//! let words = Words::new(["AIR", "TRUCK"]);
//! let codes = Codes::U8(&[1, 0, 1]);
//! stripe.append(&[Values::Int64(&[1, 2, 3]), Values::CodedText { codes, words: &words }])?;
//! file.append(stripe.finish()?)?;
//! let (bytes, summary) = file.finish()?;
//! assert_eq!((summary.rows, summary.bytes), (3, bytes.len() as u64));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Layout`] is checked once and shared; each thread encodes whole stripes with a
//! [`StripeWriter`]; one [`FileWriter`] takes the stripes in their order and writes the tail. The
//! bytes depend on the rows, on where stripes are cut and on the options, not on how rows were cut
//! into batches.
//!
//! Files follow the ORC specification v1 (file version 0.12). Integers are RLEv2 in the widths that
//! are not deprecated, decimals are varints with a constant scale, and text has a dictionary or is
//! direct. Row indexes are written, and statistics at all three levels. There is no PRESENT stream,
//! because there are no nulls. Runs end where an index stride ends, so a reader that seeks never
//! has to skip values of a run.
//!
//! Values of `char(n)` are stored as they come, without the blanks that fill them up to n: the
//! specification says nothing of padding, readers in C++ and Rust return what is stored, and the
//! Java reader trims. [`Options::pad_chars`] pads them, as Hive wants when it filters by them.

mod codec;
mod column;
mod error;
mod file;
mod layout;
mod options;
mod protobuf;
mod rle;
mod schema;
mod statistics;
mod stream;
mod stripe;

pub use error::{Error, Result};
pub use file::{FileWriter, Summary};
pub use layout::Layout;
pub use options::{Compression, Options};
pub use stripe::{Stripe, StripeWriter};

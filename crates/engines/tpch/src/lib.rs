//! Generates TPC-H: any rows of any table, in any order, as columns.
//!
//! A [`Generator`] fills a [`Batch`] with rows of a [`Table`]. Each column is returned as
//! [`Values`] in the shortest form that holds it: integers, hundredths, days, codes into a
//! dictionary, or slices of the text pool. The pool itself ([`TextPool`], 300 MiB) is made when the
//! text of a slice is wanted, never by filling a batch. [`tbl::append`] turns a batch into what
//! dbgen prints, byte for byte.
//!
//! ```
//! use dyno_tpch::{Batch, Generator, Scale, Table, Values};
//!
//! let generator = Generator::new(Scale::new(1.0)?);
//! let mut batch = Batch::new(Table::Orders);
//! generator.fill(&mut batch, 1_499_998..1_500_000)?;
//! let Values::Key(keys) = batch.values(0) else { panic!("o_orderkey is a key") };
//! assert_eq!(keys, [5_999_975, 6_000_000]);
//! # Ok::<(), dyno_tpch::Error>(())
//! ```
//!
//! It draws the random numbers of dbgen 2.x up to scale factor 10000, and knows the benchmark's
//! [`queries`] with their answers, and the [`rules`] and [`sums`] by which rows are judged. It is
//! not a driver of the benchmark, because it runs no queries and makes no refresh sets.

mod batch;
pub mod dates;
mod draws;
mod error;
mod generator;
pub mod queries;
mod random;
pub mod rules;
mod scale;
pub mod sums;
mod table;
mod tables;
pub mod tbl;
mod text;
mod values;
#[rustfmt::skip]
mod words;

pub use batch::Batch;
pub use error::{Error, Result};
pub use generator::Generator;
pub use scale::Scale;
pub use table::{Column, Kind, Table};
pub use text::{PADDING_BYTES, POOL_BYTES, TextPool};
pub use values::{Passages, Remark, Values};

//! Reads Parquet column chunks as codes and integers, without Arrow arrays in between.
//!
//! It is the shortest way from the pages of a flat, REQUIRED column to blocks of dictionary codes
//! ([`CodeReader`]) or of integers ([`IntReader`]), for operators that work on codes. Flat columns
//! with NULLs or in other encodings are read value by value ([`ValueReader`]). It is not a general
//! Parquet reader: nested columns and other types than integers and strings are refused by name
//! ([`ReadError::Unsupported`]), and the caller takes its general path.
//!
//! The bytes of a file are not trusted. Sizes are checked against what is there before memory is
//! reserved for them, so that a damaged or hostile file ends in an error.
//!
//! Format: <https://parquet.apache.org/docs/file-format/data-pages/encodings/>.

mod bits;
#[cfg(target_arch = "x86_64")]
mod bits_avx2;
#[cfg(target_arch = "x86_64")]
mod bits_avx512;
#[cfg(target_arch = "x86_64")]
mod bits_shuffled;
mod codes;
mod codings;
mod decompress;
mod delta;
mod dictionary;
mod error;
mod file;
mod hybrid;
mod ints;
mod mapping;
mod metadata;
mod pages;
mod source;
mod statistics;
mod thrift;
mod values;

pub use codes::{CodeBlock, CodeReader};
pub use codings::Codec;
pub use delta::DeltaDecoder;
pub use dictionary::StringDictionary;
pub use error::ReadError;
pub use file::{ColumnKind, ParquetFile};
pub use hybrid::HybridDecoder;
pub use ints::{CodedInts, IntReader};
pub use metadata::{Leaf, Meaning, Physical};
pub use statistics::{ColumnStatistics, FileStatistics};
pub use values::ValueReader;

/// The most values of a block that the readers hand out. Codes and values of a block fit together
/// into a first-level cache of 32 KiB.
pub const BLOCK_ROWS: usize = 1024;

//! Reads Parquet column chunks as codes and integers, without Arrow arrays in between.
//!
//! What it is: the shortest way from the pages of a flat, REQUIRED column to blocks of dictionary
//! codes ([`CodeReader`]) or of integers ([`IntReader`]), for operators that work on codes.
//! What it is not: a general Parquet reader. Nested or nullable columns and other encodings are
//! refused by name ([`ReadError::Unsupported`]), and the caller takes its general path.
//!
//! Footers, page headers and decompression come from the `parquet` crate; the RLE/bit-packed
//! hybrid, the dictionaries and DELTA_BINARY_PACKED are decoded here, since they are the hot part.
//! Format: <https://parquet.apache.org/docs/file-format/data-pages/encodings/>.

mod bits;
#[cfg(target_arch = "x86_64")]
mod bits_avx2;
#[cfg(target_arch = "x86_64")]
mod bits_avx512;
#[cfg(target_arch = "x86_64")]
mod bits_shuffled;
mod codes;
mod delta;
mod dictionary;
mod error;
mod file;
mod hybrid;
mod ints;
mod mapping;
mod page_index;
mod pages;
mod source;

pub use codes::{CodeBlock, CodeReader};
pub use delta::DeltaDecoder;
pub use dictionary::StringDictionary;
pub use error::ReadError;
pub use file::{ColumnKind, ParquetFile};
pub use hybrid::HybridDecoder;
pub use ints::{CodedInts, IntReader};
pub use page_index::PageIndex;

/// Values per block that the readers hand out. Codes and values of a block fit into a 32 KiB
/// first-level cache together.
pub const BLOCK_ROWS: usize = 1024;

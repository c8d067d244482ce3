//! Records as they are stored: one after the other in a row's body, big-endian, each with its
//! length in front, so that bodies can be joined without touching what is in them.

mod codec;
mod decode;
mod encode;
mod rows;

pub use codec::{Codec, compress, decompress};
pub use decode::{Headers, Record, Records, lengths};
pub(crate) use encode::check_length;
pub(crate) use encode::without_time;
pub use encode::{encode, encoded_bytes};
pub use rows::{BATCH_BYTES_MAX, Batch, ROW_RECORDS_MAX, RowHead, Run};

/// The largest record in bytes, its length field not counted: 8 MiB.
pub const RECORD_BYTES_MAX: usize = 8 << 20;

/// Bytes of a row's body that leave room for the row's other fields on a page of 8 KiB: one list of
/// a producer's run included, each further one costs [`RUN_BYTES`].
pub const PAGE_BODY_BYTES: usize = 8000;

/// What one more producer's run takes from a page.
pub const RUN_BYTES: usize = 24;

/// A body's largest length once it is decompressed: what one record may have, and as much again for
/// its neighbours.
pub const RAW_BODY_BYTES_MAX: usize = 2 * (RECORD_BYTES_MAX + 4);

/// Time, key length and number of headers: what the smallest record has.
pub(crate) const RECORD_BYTES_LEAST: usize = 14;

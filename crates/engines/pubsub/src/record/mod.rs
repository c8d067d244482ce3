//! Records as they are stored: one after the other in a row's body, big-endian, each with its
//! length in front. So bodies can be joined without looking at the records in them.

mod codec;
mod decode;
mod encode;
mod rows;

pub use codec::{Codec, compress, decompress};
pub use decode::{Headers, Record, RecordView, Records, lengths, views};
pub(crate) use encode::check_length;
pub(crate) use encode::without_time;
pub use encode::{encode, encoded_bytes};
pub use rows::{BATCH_BYTES_MAX, Batch, ROW_RECORDS_MAX, RowHead, Run};

/// The largest record in bytes, its length field not counted: 8 MiB.
pub const RECORD_BYTES_MAX: usize = 8 << 20;

/// How many bytes of body leave room on a page of 8 KiB for the row's other columns and one run of
/// a producer. Each further run costs [`RUN_BYTES`].
pub const PAGE_BODY_BYTES: usize = 8000;

/// How many bytes of a page one more run takes: producer, first sequence and count, eight bytes
/// each.
pub const RUN_BYTES: usize = 24;

/// The largest length of a body once it is decompressed: one record of the largest size, and as
/// much again for its neighbours.
pub const RAW_BODY_BYTES_MAX: usize = 2 * (RECORD_BYTES_MAX + 4);

/// The length of the smallest record: its time, its key's length, and the number of its headers.
pub(crate) const RECORD_BYTES_LEAST: usize = 14;

//! A durable log of opaque records for one core.
//!
//! One thread appends records to a [`Log`] and polls it to learn how far they are durable.
//! [`FileLog`] keeps them in files: in segments that are allocated ahead and recycled, with group
//! commit (O_DIRECT, an fdatasync linked to each write, several writes in flight), checkpoints that
//! let it drop old records, and online backups. [`Recovery`] reads all of it back. [`RemoteLog`]
//! sends the bytes to other processes, which keep them in memory ([`PersistStore`]), and
//! [`MemoryLog`] keeps nothing. This crate starts no threads, opens no sockets and does not
//! interpret records.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use std::sync::Arc;
//!
//! use dyno_io::{HostFiles, Meanwhile};
//! use dyno_txn_log::{Options, Recovery, fresh_identity};
//!
//! let options = Options {
//!     identity: fresh_identity(),
//!     segment_bytes: 1 << 20,
//!     buffer_bytes: 64 << 10,
//!     ..Options::default()
//! };
//! let open = || Recovery::open(Arc::new(HostFiles), &directory.path().join("core-0"), options);
//!
//! let (mut log, _) = open()?.finish()?;
//! let end = log.append(b"a transfer")?;
//! while log.poll()? < end {
//!     log.submit(Meanwhile::GoesOn)?;
//! }
//! // Now the client may be told.
//! drop(log);
//!
//! let mut recovery = open()?;
//! while let Some(record) = recovery.next_record()? {
//!     assert_eq!(record.bytes, b"a transfer");
//! }
//! let (mut log, found) = recovery.finish()?;
//! assert_eq!(found.records, 1);
//!
//! // A checkpoint holds the state that the records so far led to, so they are no longer needed.
//! let mut checkpoint = log.checkpointer().begin()?;
//! checkpoint.chunk(b"all accounts")?;
//! checkpoint.commit(log.flush()?)?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - A record is on stable storage when [`Log::durable`] has reached its end. After a crash of the
//!   process or the machine, recovery returns exactly the records up to there, in order, and
//!   perhaps some of those after it, without a gap.
//! - A byte of durable data that changes later is reported with its file and position, and is never
//!   mistaken for the end of the log. Each group says in its header what was durable when it was
//!   written, so a position that a later group or the manifest calls durable cannot be the end.
//!   The exception is damage to the last writes before a crash: nothing was written after them, so
//!   they look like a torn write. [`FileLog::close`] removes the exception for a log that is closed
//!   in order.
//! - Records of an earlier use of a segment, or that a crash left after a gap, are never taken for
//!   new ones, because the position, the epoch and the identity of the log are in every checksum
//!   and each opening begins a new epoch.
//! - After a failed write the log reports nothing more as durable ([`LogError::Poisoned`]). The
//!   caller drops the log and recovers it.
//!
//! A group is padded to whole blocks of 4096 bytes and its last block is never written again.
//! Therefore a later write cannot endanger what was durable, and several writes can be in flight.
//! The example `append` compares that with writing the same block again.
//!
//! A thread that polls and has nothing else to do should sleep for a moment now and then. The
//! kernel thread that completes a write can run on any core, but it may not get one while threads
//! spin on all of them. Sleeps shorter than 10 us do not help, because the kernel does not move a
//! thread to a core for so short a time.

mod backup;
mod checkpoint;
mod error;
mod files;
mod group;
mod home;
mod judge;
mod log;
mod manifest;
mod memory;
mod position;
mod recovery;
mod remote;
mod scan;
mod segment;

pub use backup::{Cut, restore};
pub use checkpoint::{CheckpointWriter, Checkpointer, MOST_CHUNK_BYTES};
pub use error::LogError;
pub use files::FileLog;
pub use home::{Options, fresh_identity};
pub use log::Log;
pub use memory::MemoryLog;
pub use position::{BLOCK_BYTES, Lsn};
pub use recovery::{Record, Recovered, Recovery};
pub use remote::{
    Answer, Ask, Outgoing, PersistError, PersistStore, Read, RemoteLog, RemoteOptions, Reply,
    Request, WireError, append_head, recovered_end,
};

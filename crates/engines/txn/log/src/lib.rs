//! A durable log of opaque records for one core.
//!
//! What it is: [`Log`], to which one thread appends records and which it polls to hear how far they
//! are on the disk. In files ([`FileLog`]) it has segments that are made ahead and used again,
//! groups of records in one write (O_DIRECT, with an fdatasync linked to each; several under way),
//! checkpoints that let it forget, and backups while it runs. [`Recovery`] reads all of it back.
//! [`RemoteLog`] sends the bytes to other processes that keep them in memory ([`PersistStore`]);
//! [`MemoryLog`] keeps nothing. What it is not: a thread, a network, or anything that knows what a
//! record means.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use std::sync::Arc;
//!
//! use dyno_io::HostFiles;
//! use dyno_txn_log::{Options, Recovery, fresh_identity};
//!
//! let options = Options { identity: fresh_identity(), segment_bytes: 1 << 20, buffer_bytes: 64 << 10, ..Options::default() };
//! let open = || Recovery::open(Arc::new(HostFiles), &directory.path().join("core-0"), options);
//!
//! let (mut log, _) = open()?.finish()?;
//! let end = log.append(b"a transfer")?;
//! while log.poll()? < end {
//!     log.submit()?;
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
//! // A checkpoint holds what the records so far came to; then they are not needed any more.
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
//!   process or the machine, recovery gives exactly the records up to there, in order, and perhaps
//!   some of those behind, without a gap.
//! - A byte that changed later in what was durable is found, and named by file and position, never
//!   taken for the end. Each group says in its header what was durable when it was written; a
//!   position that anything later, or the manifest, calls durable cannot be the end. The one thing
//!   that looks like a torn write is damage to the last writes before a crash, behind which nothing
//!   was written; [`FileLog::close`] closes that hole for a log that ends in peace.
//! - Records of an earlier use of a segment, or that a crash left behind a gap, are never taken for
//!   new ones: position, epoch and number of the log are in every checksum, and each opening begins
//!   a new epoch.
//! - After a write failed nothing is called durable any more: [`LogError::Poisoned`]. Dropping the
//!   log and recovering is the way on.
//!
//! A group is padded to whole blocks of 4096 bytes and its last block is never written again: so
//! what was durable is never at risk from a later write, and several writes can be under way. The
//! example `append` measures writing to the next place and to the same.
//!
//! A thread that polls and has nothing else to do should sleep for a moment now and then. The
//! kernel thread that ends a write runs on any core, but it needs one, and may not get it while
//! every core is spun on. Shorter sleeps than 10 us do not help, because the kernel does not move a
//! thread to a core for so little.

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

pub use backup::restore;
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

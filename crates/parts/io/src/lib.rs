//! Sinks and sources for bytes: where an engine's output goes and where its input comes from.
//!
//! What it is: [`Sink`] (sequential writing) and [`Source`] (positioned reading) with a do-nothing
//! form, one through the page cache, one past it (O_DIRECT), and a counting wrapper; and
//! [`BlockFile`], the positioned file below the direct ones, for who measures a disk. What it is
//! not: a thread, a queue or a cache of its own. io_uring comes when an engine needs it.

mod aligned;
mod block_file;
mod counting;
mod direct;
mod error;
mod null;
mod page_cache;

pub use aligned::{ALIGNMENT_BYTES, AlignedBuffer};
pub use block_file::{Access, BlockFile, Caching};
pub use counting::{Counting, Counts};
pub use direct::{DirectSink, DirectSource};
pub use error::IoError;
pub use null::{NullSink, ZeroSource};
pub use page_cache::{FileSink, FileSource};

/// How far [`Sink::finish`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Handed to the operating system; a crash of the machine may lose it.
    Handed,
    /// On stable storage (fdatasync) when `finish` returns.
    Stable,
}

/// Takes bytes in order.
pub trait Sink: Send {
    /// Appends `bytes`. After an error the sink must not be used again: what it holds is unknown.
    ///
    /// # Errors
    /// When the system refuses the bytes, for example on a full disk.
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError>;

    /// Bytes taken so far.
    fn written_bytes(&self) -> u64;

    /// Writes what is buffered and makes it as durable as asked. Returns the bytes taken. Dropping
    /// a sink without this loses what it buffers.
    ///
    /// # Errors
    /// When the last bytes cannot be written or made durable.
    fn finish(&mut self, durability: Durability) -> Result<u64, IoError>;
}

/// Gives bytes at any position.
pub trait Source: Send {
    /// Fills `into` from `offset` on and returns how much it filled: less than asked only at the
    /// end.
    ///
    /// # Errors
    /// When the system cannot read there.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, IoError>;

    /// Bytes in all.
    fn len_bytes(&self) -> u64;
}

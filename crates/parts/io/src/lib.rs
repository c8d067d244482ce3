//! Sinks and sources for bytes: where an engine's output goes and where its input comes from.
//!
//! What it is: [`Sink`] (sequential writing) and [`Source`] (positioned reading), each through the
//! page cache, past it (O_DIRECT), past it with several writes at once (io_uring), to standard
//! output, and in a form that does nothing; a wrapper that counts; [`open`] and [`stage`], which
//! choose among them; [`Staged`], with which a file appears complete or not at all. Below these are
//! [`Device`], [`FileSystem`], [`Queue`] and [`Storage`] (a directory of files for a log or a
//! store), of which `dyno-sim` has versions with faults, and [`BlockFile`], the real file, for
//! measuring a disk. What it is not: a thread or a cache of its own.

mod aligned;
mod block_file;
mod counting;
mod device;
mod direct;
mod error;
mod host;
mod kind;
mod null;
mod open;
mod opening;
mod page_cache;
mod queue;
mod reserve;
mod ring;
mod staged;
mod stdout;
mod storage;
mod writer;

pub use aligned::{ALIGNMENT_BYTES, AlignedBuffer};
pub use block_file::BlockFile;
pub use counting::{Counting, Counts};
pub use device::{Claim, Device, Existing, FileSystem, write_whole};
pub use direct::{DirectSink, DirectSource};
pub use error::IoError;
pub use host::HostFiles;
pub use kind::SinkKind;
pub use null::{NullSink, ZeroSource};
pub use open::{Buffering, Chosen, open, stage};
pub use opening::{Access, Caching, Opening, Syncing};
pub use page_cache::{FileSink, FileSource};
pub use queue::{Completion, InlineQueue, Meanwhile, Queue, QueuedSink, Request, Settled};
pub use ring::{Ring, UringSink};
pub use staged::Staged;
pub use stdout::StdoutSink;
pub use storage::{Blocks, Storage};
pub use writer::SinkWriter;

/// How durable [`Sink::finish`] makes the bytes before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The bytes are handed to the operating system; a crash of the machine may lose them.
    Handed,
    /// The bytes are on stable storage (fdatasync).
    Stable,
}

/// Takes bytes and writes them in order.
pub trait Sink: Send + std::fmt::Debug {
    /// Appends `bytes`. After an error the sink must not be used again: what it holds is unknown.
    ///
    /// # Errors
    /// When the system refuses the bytes, for example on a full disk.
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError>;

    /// Bytes accepted so far, those that are still buffered included.
    fn written_bytes(&self) -> u64;

    /// Writes what is buffered and makes everything as durable as requested. Returns the bytes
    /// accepted. Dropping a sink without this loses what it buffers.
    ///
    /// # Errors
    /// When the last bytes cannot be written or made durable.
    fn finish(&mut self, durability: Durability) -> Result<u64, IoError>;
}

/// A sink whose bytes appear at their destination all at once, or not at all. Dropping it without
/// `publish` removes what it wrote, as far as the destination allows.
pub trait Output: Sink {
    /// Finishes, on stable storage, and makes the bytes appear. Returns how many there are.
    ///
    /// # Errors
    /// Those of `finish`, and those of the destination; the implementation says what exists then.
    fn publish(self: Box<Self>) -> Result<u64, IoError>;
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        (**self).write(bytes)
    }

    fn written_bytes(&self) -> u64 {
        (**self).written_bytes()
    }

    fn finish(&mut self, durability: Durability) -> Result<u64, IoError> {
        (**self).finish(durability)
    }
}

/// Reads bytes at any position.
pub trait Source: Send {
    /// Fills `into` from `offset` on and returns how much it filled, which is less than its length
    /// only at the end.
    ///
    /// # Errors
    /// When the system cannot read there.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, IoError>;

    /// Length of the whole source in bytes.
    fn len_bytes(&self) -> u64;
}

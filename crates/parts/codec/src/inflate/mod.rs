//! Streaming inflate (RFC 1951) and gzip (RFC 1952).
//!
//! [`GzipStream`] and [`DeflateStream`] inflate from any reader into a buffer that the caller owns
//! and passes on without another copy: the caller keeps the last [`HISTORY`] bytes in front of the
//! write position. There are two engines behind the same calls: [`Engine::Native`] is the fast one,
//! [`Engine::Portable`] is zlib-rs, which checks the first one in tests and replaces it when it is
//! doubted.

mod decoder;
mod engine;
mod fast;
mod gzip;
mod input;
mod tables;

pub use engine::{DeflateStream, Engine};
pub use gzip::{GzipStream, TrailingGarbage};

/// How far back a match may reach, in bytes.
pub const HISTORY: usize = 32 * 1024;

/// Free space that a call needs behind the write position to make progress, in bytes.
pub const OUTPUT_MARGIN: usize = 512;

/// Why a stream cannot be inflated.
#[derive(Debug, thiserror::Error)]
#[error("{kind} at compressed byte {offset}")]
pub struct InflateError {
    /// Offset in the compressed stream at which the fault was noticed.
    pub offset: u64,
    /// The fault that was found.
    pub kind: InflateErrorKind,
}

/// The faults of a compressed stream, and of reading it.
#[derive(Debug, thiserror::Error)]
pub enum InflateErrorKind {
    /// The reader of the compressed bytes failed.
    #[error("reading failed: {0}")]
    Read(#[from] std::io::Error),
    /// The stream ends in the middle of the named part.
    #[error("truncated: the stream ends in the middle of {0}")]
    Truncated(&'static str),
    /// The stream does not begin with the magic bytes of gzip.
    #[error("not a gzip stream: it starts with {0:02x} {1:02x}")]
    NotGzip(u8, u8),
    /// A gzip header with a method or flags that RFC 1952 does not define.
    #[error("gzip header: {0}")]
    Header(&'static str),
    /// The gzip header differs from what was written.
    #[error("corrupt: CRC-16 of the gzip header is {computed:04x}, the header says {stored:04x}")]
    HeaderChecksum {
        /// CRC-16 of the header that was read.
        computed: u16,
        /// CRC-16 that the header states.
        stored: u16,
    },
    /// A block violates RFC 1951.
    #[error("corrupt: {0}")]
    Corrupt(&'static str),
    /// The inflated bytes differ from what was compressed.
    #[error("corrupt: CRC-32 is {computed:08x}, the stream says {stored:08x}")]
    Checksum {
        /// CRC-32 of the inflated bytes.
        computed: u32,
        /// CRC-32 that the trailer states.
        stored: u32,
    },
    /// The inflated length differs from that of what was compressed.
    #[error("corrupt: length modulo 2^32 is {computed}, the stream says {stored}")]
    Length {
        /// Length of the inflated bytes, modulo 2^32.
        computed: u32,
        /// Length that the trailer states.
        stored: u32,
    },
}

#[cfg(test)]
mod tests;

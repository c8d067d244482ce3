//! Streaming inflate (RFC 1951) and gzip (RFC 1952).
//!
//! [`GzipStream`] and [`DeflateStream`] inflate from any reader into a buffer that the caller owns
//! and hands on without another copy: the caller keeps the last [`HISTORY`] bytes in front of the
//! place to write to. Two engines stand behind the same calls: [`Engine::Native`] is the fast one,
//! [`Engine::Portable`] is zlib-rs, which serves as its oracle and as the way out.

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

/// Free space that a call needs behind the write position to get anything done, in bytes.
pub const OUTPUT_MARGIN: usize = 512;

/// Why a stream cannot be inflated.
#[derive(Debug, thiserror::Error)]
#[error("{kind} at compressed byte {offset}")]
pub struct InflateError {
    /// Offset in the compressed stream at which it was noticed.
    pub offset: u64,
    /// What is wrong.
    pub kind: InflateErrorKind,
}

/// What is wrong with a compressed stream.
#[derive(Debug, thiserror::Error)]
pub enum InflateErrorKind {
    /// The reader failed.
    #[error("reading failed: {0}")]
    Read(#[from] std::io::Error),
    /// The stream ends in the middle.
    #[error("truncated: the stream ends in the middle of {0}")]
    Truncated(&'static str),
    /// Not gzip.
    #[error("not a gzip stream: it starts with {0:02x} {1:02x}")]
    NotGzip(u8, u8),
    /// A gzip header with a method or flags that RFC 1952 does not define.
    #[error("gzip header: {0}")]
    Header(&'static str),
    /// A gzip header that came out differently from what was written.
    #[error("corrupt: CRC-16 of the gzip header is {computed:04x}, the header says {stored:04x}")]
    HeaderChecksum {
        /// Of what was read.
        computed: u16,
        /// What the header says.
        stored: u16,
    },
    /// A block that breaks RFC 1951.
    #[error("corrupt: {0}")]
    Corrupt(&'static str),
    /// The bytes came out differently from what was compressed.
    #[error("corrupt: CRC-32 is {computed:08x}, the stream says {stored:08x}")]
    Checksum {
        /// Of what came out.
        computed: u32,
        /// What the trailer says.
        stored: u32,
    },
    /// The length came out differently from what was compressed.
    #[error("corrupt: length modulo 2^32 is {computed}, the stream says {stored}")]
    Length {
        /// Of what came out.
        computed: u32,
        /// What the trailer says.
        stored: u32,
    },
}

#[cfg(test)]
mod tests;

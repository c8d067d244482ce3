//! Decompression of a batch. The result has a bound, because a few bytes may stand for any number.

use std::io::{self, Read};

use bytes::{Buf, Bytes};

/// How a batch is compressed; the number is in bits 0 to 2 of its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// RFC 1952.
    Gzip,
    /// Blocks of snappy, in the frame of snappy-java or one bare block.
    Snappy,
    /// The LZ4 frame format.
    Lz4,
    /// RFC 8878.
    Zstd,
}

/// The largest window of zstd that is decompressed, as a power of two: level 19 of its
/// command line takes 8 MiB. A frame could ask for gigabytes.
const ZSTD_WINDOW_LOG: u32 = 24;
/// What snappy-java begins with: a name, a version, and the oldest version that reads it.
const SNAPPY_JAVA: &[u8] = b"\x82SNAPPY\0";
const SNAPPY_JAVA_HEAD_BYTES: usize = 16;

impl Compression {
    /// The compression that a batch's attributes name.
    pub fn from_attributes(attributes: i16) -> Option<Compression> {
        use Compression::*;
        [None, Gzip, Snappy, Lz4, Zstd]
            .into_iter()
            .nth(usize::from(attributes.cast_unsigned() & 7))
    }

    /// Decompresses to at most `most_bytes`.
    ///
    /// # Errors
    /// `OutOfMemory` if there would be more; `InvalidData` and others if the bytes are damaged.
    pub fn decompress(self, bytes: Bytes, most_bytes: usize) -> io::Result<Bytes> {
        match self {
            Compression::None if bytes.len() > most_bytes => Err(too_long()),
            Compression::None => Ok(bytes),
            Compression::Gzip => read_all(flate2::read::MultiGzDecoder::new(&*bytes), most_bytes),
            Compression::Snappy => snappy(bytes, most_bytes),
            Compression::Lz4 => read_all(lz4_flex::frame::FrameDecoder::new(&*bytes), most_bytes),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(&*bytes)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                read_all(decoder, most_bytes)
            }
        }
    }
}

fn too_long() -> io::Error {
    io::ErrorKind::OutOfMemory.into()
}

fn read_all(decoder: impl Read, most_bytes: usize) -> io::Result<Bytes> {
    let mut raw = Vec::new();
    // One more byte than allowed tells a batch that is too long from one that just fits.
    decoder.take(most_bytes as u64 + 1).read_to_end(&mut raw)?;
    if raw.len() <= most_bytes {
        Ok(raw.into())
    } else {
        Err(too_long())
    }
}

fn snappy(mut bytes: Bytes, most_bytes: usize) -> io::Result<Bytes> {
    let mut raw = Vec::new();
    if !bytes.starts_with(SNAPPY_JAVA) {
        block(&bytes, most_bytes, &mut raw)?;
        return Ok(raw.into());
    }
    if bytes.len() < SNAPPY_JAVA_HEAD_BYTES {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    bytes.advance(SNAPPY_JAVA_HEAD_BYTES);
    while !bytes.is_empty() {
        let length = bytes.try_get_u32().map_err(io::Error::other)? as usize;
        if length > bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        block(&bytes.split_to(length), most_bytes, &mut raw)?;
    }
    Ok(raw.into())
}

/// Decompresses one block behind what is there already.
fn block(packed: &[u8], most_bytes: usize, raw: &mut Vec<u8>) -> io::Result<()> {
    let length = snap::raw::decompress_len(packed).map_err(io::Error::other)?;
    let begin = raw.len();
    if length > most_bytes - begin {
        return Err(too_long());
    }
    raw.resize(begin + length, 0);
    let written = snap::raw::Decoder::new().decompress(packed, &mut raw[begin..]);
    written.map(drop).map_err(io::Error::other)
}

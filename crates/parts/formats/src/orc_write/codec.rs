//! Compresses streams in chunks, each of which a reader can decompress by itself.

use super::error::{Error, Result};
use super::options::Compression;

/// Compresses chunks. Each stripe writer keeps one, because the tables of a codec are large and
/// slow to set up.
pub(super) struct Codec {
    engine: Engine,
    chunk_bytes: usize,
    name: &'static str,
    scratch: Vec<u8>,
}

enum Engine {
    None,
    Zlib(Box<flate2::Compress>, flate2::Compression),
    Snappy(Box<snap::raw::Encoder>),
    Lz4,
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Codec {
    pub(super) fn new(compression: Compression, chunk_bytes: usize) -> Result<Codec> {
        let name = compression.name();
        let engine = match compression {
            Compression::None => Engine::None,
            Compression::Zlib(level) => {
                let level = flate2::Compression::new(level);
                Engine::Zlib(Box::new(flate2::Compress::new(level, false)), level)
            }
            Compression::Snappy => Engine::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Lz4 => Engine::Lz4,
            Compression::Zstd(level) => {
                let compressor = zstd::bulk::Compressor::new(level).map_err(failed(name))?;
                Engine::Zstd(Box::new(compressor))
            }
        };
        let most = match &engine {
            Engine::None => 0,
            // No more than the chunk itself, so that deflate gives up where it does not shrink it.
            // The other codecs refuse a buffer that is shorter than their worst case.
            Engine::Zlib(..) => chunk_bytes,
            Engine::Snappy(_) => snap::raw::max_compress_len(chunk_bytes),
            Engine::Lz4 => lz4_flex::block::get_maximum_output_size(chunk_bytes),
            Engine::Zstd(_) => zstd::zstd_safe::compress_bound(chunk_bytes),
        };
        Ok(Codec {
            engine,
            chunk_bytes,
            name,
            scratch: vec![0; most],
        })
    }

    /// Whether streams are written as they are, without cutting them into chunks.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.engine, Engine::None)
    }

    /// The most bytes that a chunk may have before compression.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Appends one chunk: its header of three bytes, and its bytes compressed or, when that does
    /// not shrink them, as they are.
    pub(super) fn pack(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<()> {
        debug_assert!(chunk.len() <= self.chunk_bytes);
        // The header has 23 bits of length and one that says that the chunk is stored as it is. The
        // options allow 4 MiB, which fit.
        match self.compress(chunk)? {
            Some(length) if length < chunk.len() => {
                out.extend_from_slice(&(length as u32 * 2).to_le_bytes()[..3]);
                out.extend_from_slice(&self.scratch[..length]);
            }
            _ => {
                out.extend_from_slice(&(chunk.len() as u32 * 2 + 1).to_le_bytes()[..3]);
                out.extend_from_slice(chunk);
            }
        }
        Ok(())
    }

    /// Compresses into the scratch buffer. `None` if the result does not fit into it, which only
    /// happens with zlib, and says that compressing does not pay.
    fn compress(&mut self, chunk: &[u8]) -> Result<Option<usize>> {
        let name = self.name;
        let out = self.scratch.as_mut_slice();
        Ok(match &mut self.engine {
            Engine::None => None,
            Engine::Zlib(deflate, level) => {
                let status = deflate
                    .compress(chunk, out, flate2::FlushCompress::Finish)
                    .map_err(failed(name))?;
                if status == flate2::Status::StreamEnd {
                    let length = deflate.total_out() as usize;
                    deflate.reset();
                    Some(length)
                } else {
                    // zlib-rs 0.6.8 cannot be reset while output waits in it, because it panics on
                    // a later chunk. So the compressor is replaced.
                    **deflate = flate2::Compress::new(*level, false);
                    None
                }
            }
            Engine::Snappy(encoder) => Some(encoder.compress(chunk, out).map_err(failed(name))?),
            Engine::Lz4 => Some(lz4_flex::block::compress_into(chunk, out).map_err(failed(name))?),
            Engine::Zstd(compressor) => Some(
                compressor
                    .compress_to_buffer(chunk, out)
                    .map_err(failed(name))?,
            ),
        })
    }

    /// Compresses a whole section of the tail or of a stripe, chunk by chunk.
    pub(super) fn section(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        if self.is_none() {
            return Ok(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len() + 3);
        for chunk in bytes.chunks(self.chunk_bytes) {
            self.pack(chunk, &mut out)?;
        }
        Ok(out)
    }
}

fn failed<E: std::fmt::Display>(codec: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::Compress {
        codec,
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn deflate_goes_on_after_chunks_that_do_not_shrink() {
        const CHUNK: usize = 1 << 16;
        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8 | 0x80
        })
        .take(CHUNK)
        .collect();
        let text: Vec<u8> = (0..CHUNK).map(|i| b"carefully "[i * i % 10]).collect();
        for level in 1..=9 {
            let mut codec = Codec::new(Compression::Zlib(level), CHUNK).expect("a known codec");
            for chunk in [&noise, &text, &noise, &noise, &text] {
                let mut packed = Vec::new();
                codec.pack(chunk, &mut packed).expect("it compresses");
                let header = u32::from_le_bytes([packed[0], packed[1], packed[2], 0]);
                assert_eq!(header as usize >> 1, packed.len() - 3);
                let mut back = packed[3..].to_vec();
                if header & 1 == 0 {
                    let mut reader = flate2::read::DeflateDecoder::new(&packed[3..]);
                    back.clear();
                    reader.read_to_end(&mut back).expect("it is deflate");
                }
                assert!(back == **chunk, "level {level}");
            }
        }
    }
}

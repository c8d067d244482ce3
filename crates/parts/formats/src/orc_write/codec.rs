//! Chunks: what a reader can decompress by itself.

use super::error::{Error, Result};
use super::options::Compression;

/// Compresses chunks. One lives in each stripe writer, since its tables are large.
pub(super) struct Codec {
    engine: Engine,
    chunk_bytes: usize,
    name: &'static str,
    scratch: Vec<u8>,
}

enum Engine {
    None,
    Zlib(Box<flate2::Compress>),
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
                Engine::Zlib(Box::new(flate2::Compress::new(level, false)))
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
            // Room for what does not shrink: zlib-rs must never wait for more of it.
            Engine::Zlib(_) => chunk_bytes + chunk_bytes / 64 + 1024,
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

    /// Whether streams are written as they are, without chunks.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.engine, Engine::None)
    }

    /// Most bytes of a chunk before compression.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Appends one chunk: its header of three bytes, and its bytes compressed or, when that does not
    /// shrink them, as they are.
    pub(super) fn pack(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<()> {
        debug_assert!(chunk.len() <= self.chunk_bytes);
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

    /// Compresses into the scratch buffer; none when that has no room.
    fn compress(&mut self, chunk: &[u8]) -> Result<Option<usize>> {
        let name = self.name;
        let out = self.scratch.as_mut_slice();
        Ok(match &mut self.engine {
            Engine::None => None,
            Engine::Zlib(deflate) => {
                deflate.reset();
                let status = deflate
                    .compress(chunk, out, flate2::FlushCompress::Finish)
                    .map_err(failed(name))?;
                (status == flate2::Status::StreamEnd).then(|| deflate.total_out() as usize)
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

    /// A section of the tail or of a stripe: all of it, in chunks.
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

//! Compresses pages, with codecs whose memory is used again.

use super::error::{Error, Result};
use super::options::Compression;

#[derive(Default)]
pub(super) struct Compressor {
    snappy: Snappy,
    zstd: Option<(i32, zstd::bulk::Compressor<'static>)>,
    /// As long as the worst case of the largest page so far.
    out: Vec<u8>,
}

struct Snappy(snap::raw::Encoder);

impl Default for Snappy {
    fn default() -> Snappy {
        Snappy(snap::raw::Encoder::new())
    }
}

impl Compressor {
    /// Compresses a page. [`Compression::None`] returns the page itself.
    pub fn compress<'a>(&'a mut self, codec: Compression, page: &'a [u8]) -> Result<&'a [u8]> {
        let failed = |reason: String| Error::Compression { codec, reason };
        let bytes = match codec {
            Compression::None => return Ok(page),
            Compression::Snappy => {
                self.room(snap::raw::max_compress_len(page.len()));
                self.snappy
                    .0
                    .compress(page, &mut self.out)
                    .map_err(|e| failed(e.to_string()))?
            }
            Compression::Zstd(level) => {
                self.room(zstd::zstd_safe::compress_bound(page.len()));
                // A compressor has one level. Columns may have different ones, and then it is made
                // anew.
                let known = self.zstd.take().filter(|(known, _)| *known == level);
                let (_, zstd) = match known {
                    Some(known) => self.zstd.insert(known),
                    None => {
                        let new = zstd::bulk::Compressor::new(level);
                        let new = new.map_err(|e| failed(e.to_string()))?;
                        self.zstd.insert((level, new))
                    }
                };
                zstd.compress_to_buffer(page, &mut self.out[..])
                    .map_err(|e| failed(e.to_string()))?
            }
            Compression::Lz4Raw => {
                self.room(lz4_flex::block::get_maximum_output_size(page.len()));
                lz4_flex::block::compress_into(page, &mut self.out)
                    .map_err(|e| failed(e.to_string()))?
            }
        };
        Ok(&self.out[..bytes])
    }

    fn room(&mut self, bytes: usize) {
        if self.out.len() < bytes {
            self.out.resize(bytes, 0);
        }
    }
}

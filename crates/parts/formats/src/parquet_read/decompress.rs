//! Decompresses pages, and refuses those that claim more bytes than their codec could hold.

use std::io::Read;

use bytes::Bytes;

use super::ReadError;
use super::codings::Codec;

/// Decompresses the pages of one column chunk.
pub(super) struct Decompressor {
    codec: Codec,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

/// Bytes in front of each block in Hadoop's framing of LZ4: the lengths before and after
/// compression.
const HADOOP_PREFIX: usize = 8;

impl Decompressor {
    /// # Errors
    /// [`ReadError::Unsupported`] for a codec that is not read here.
    pub(super) fn new(codec: Codec) -> Result<Self, ReadError> {
        match codec {
            Codec::Other(_) => Err(ReadError::unsupported(format!("a column in {codec}"))),
            codec => Ok(Self { codec, zstd: None }),
        }
    }

    /// Returns the page as it was before compression, which had `len` bytes by its header.
    ///
    /// # Errors
    /// The header promises more than the stored bytes can hold, or another length than comes out.
    pub(super) fn decompress(&mut self, stored: Bytes, len: usize) -> Result<Bytes, ReadError> {
        let codec = self.codec;
        let failed = |reason: String| ReadError::damaged(format!("a {codec} page: {reason}"));
        if codec == Codec::Uncompressed {
            return Ok(stored);
        }
        if len > stored.len().saturating_mul(most_expansion(codec)) {
            let have = stored.len();
            return Err(failed(format!("{have} bytes cannot hold a page of {len}")));
        }
        // The bound above still allows much for a large page, so a refusal of the memory is an
        // error of this file and does not end the process.
        let mut page = Vec::new();
        if page.try_reserve_exact(len).is_err() {
            return Err(failed(format!("there is no memory for {len} bytes")));
        }
        let written = match codec {
            Codec::Zstd => {
                let zstd = match &mut self.zstd {
                    Some(zstd) => zstd,
                    None => self.zstd.insert(
                        zstd::bulk::Decompressor::new().map_err(|e| failed(e.to_string()))?,
                    ),
                };
                // It writes into the reserved room only, which therefore need not be zeroed.
                zstd.decompress_to_buffer(&stored, &mut page)
                    .map_err(|e| failed(e.to_string()))?
            }
            Codec::Snappy => {
                page.resize(len, 0);
                snap::raw::Decoder::new()
                    .decompress(&stored, &mut page)
                    .map_err(|e| failed(e.to_string()))?
            }
            Codec::Lz4Raw => {
                page.resize(len, 0);
                lz4_flex::block::decompress_into(&stored, &mut page)
                    .map_err(|e| failed(e.to_string()))?
            }
            _ => {
                page.resize(len, 0);
                lz4(&stored, &mut page).map_err(failed)?
            }
        };
        if written != len {
            return Err(failed(format!(
                "it has {written} bytes, its header says {len}"
            )));
        }
        Ok(page.into())
    }
}

/// The most bytes that one stored byte can become. A page whose header claims more is refused
/// before memory is reserved, so that a file of a few bytes cannot have gigabytes reserved.
fn most_expansion(codec: Codec) -> usize {
    match codec {
        // A copy of up to 64 bytes takes three (format description of Snappy, "Copies").
        Codec::Snappy => 22,
        // A block of up to 128 KiB takes four bytes when it repeats one (RFC 8878, 3.1.1.2).
        Codec::Zstd => 32 << 10,
        // Each further byte of a match's length stands for up to 255.
        _ => 255,
    }
}

/// Decompresses what the codec named LZ4 stores. That depends on the writer: blocks in Hadoop's
/// framing, a frame of LZ4 itself, or one bare block. Only the bytes tell which, so all are tried.
fn lz4(stored: &[u8], page: &mut [u8]) -> Result<usize, String> {
    if let Some(written) = lz4_hadoop(stored, page) {
        return Ok(written);
    }
    let mut frame = lz4_flex::frame::FrameDecoder::new(stored);
    if frame.read_exact(page).is_ok() && frame.read(&mut [0]).is_ok_and(|more| more == 0) {
        return Ok(page.len());
    }
    lz4_flex::block::decompress_into(stored, page).map_err(|e| e.to_string())
}

/// Decompresses blocks in Hadoop's framing, and returns how many bytes they had. `None` if the
/// bytes are not such blocks; `page` may then hold parts of a failed attempt.
fn lz4_hadoop(mut stored: &[u8], page: &mut [u8]) -> Option<usize> {
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize);
    let mut written = 0usize;
    while !stored.is_empty() {
        let (prefix, rest) = stored.split_at_checked(HADOOP_PREFIX)?;
        let (len, stored_len) = (number(&prefix[..4])?, number(&prefix[4..])?);
        let (block, rest) = rest.split_at_checked(stored_len)?;
        let room = page.get_mut(written..written.checked_add(len)?)?;
        let got = lz4_flex::block::decompress_into(block, room).ok()?;
        if got != len {
            return None;
        }
        written += len;
        stored = rest;
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn all_that_is_called_lz4_is_read() {
        let text = b"the same again, the same again, the same again".repeat(9);
        let block = lz4_flex::block::compress(&text);
        let mut frame = lz4_flex::frame::FrameEncoder::new(Vec::new());
        frame.write_all(&text).unwrap();
        let frame = frame.finish().unwrap();
        let mut hadoop = Vec::new();
        for half in text.chunks(text.len().div_ceil(2)) {
            let block = lz4_flex::block::compress(half);
            hadoop.extend_from_slice(&(half.len() as u32).to_be_bytes());
            hadoop.extend_from_slice(&(block.len() as u32).to_be_bytes());
            hadoop.extend_from_slice(&block);
        }
        for stored in [block, frame, hadoop] {
            let mut lz4 = Decompressor::new(Codec::Lz4).unwrap();
            let page = lz4.decompress(stored.into(), text.len()).unwrap();
            assert_eq!(page, text);
        }
    }

    #[test]
    fn a_page_that_claims_more_than_its_bytes_can_hold_is_refused_at_once() {
        for codec in [Codec::Snappy, Codec::Zstd, Codec::Lz4, Codec::Lz4Raw] {
            let mut decompressor = Decompressor::new(codec).unwrap();
            let stored = Bytes::from_static(b"a few bytes");
            let error = decompressor.decompress(stored, 1 << 30).unwrap_err();
            assert!(error.to_string().contains("cannot hold"), "{error}");
        }
    }

    /// The tightest pages there are stay readable: long runs of one byte.
    #[test]
    fn long_runs_are_within_the_bound() {
        let run = vec![7; 64 << 20];
        let compressed = [
            (
                Codec::Snappy,
                snap::raw::Encoder::new().compress_vec(&run).unwrap(),
            ),
            (Codec::Zstd, zstd::bulk::compress(&run, 1).unwrap()),
            (Codec::Lz4Raw, lz4_flex::block::compress(&run)),
        ];
        for (codec, stored) in compressed {
            let mut decompressor = Decompressor::new(codec).unwrap();
            let page = decompressor.decompress(stored.into(), run.len()).unwrap();
            assert!(page == run, "{codec}");
        }
    }

    #[test]
    fn a_page_of_another_length_than_its_header_says_is_damaged() {
        let text = b"twelve bytes";
        let compressed = [
            (
                Codec::Snappy,
                snap::raw::Encoder::new().compress_vec(text).unwrap(),
            ),
            (Codec::Zstd, zstd::bulk::compress(text, 1).unwrap()),
            (Codec::Lz4Raw, lz4_flex::block::compress(text)),
        ];
        for (codec, stored) in compressed {
            let mut decompressor = Decompressor::new(codec).unwrap();
            let stored = Bytes::from(stored);
            let page = decompressor.decompress(stored.clone(), 12).unwrap();
            assert_eq!(&page[..], text, "{codec}");
            for wrong in [11, 13] {
                let error = decompressor.decompress(stored.clone(), wrong).unwrap_err();
                assert!(error.to_string().contains(&codec.to_string()), "{error}");
            }
        }
    }
}

//! zstd frames of one page each, through the C library: the second tier, for pages that are not
//! touched any more.
//!
//! The frames have no magic, no length and no checksum, because the store keeps these already. They
//! are `ZSTD_f_zstd1_magicless` frames (zstd.h), which have to be read with the same setting.

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat};

use crate::lz4::{Block, PAGE_BYTES, Page};

/// A refusal by the C library, in its words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("zstd: {0}")]
pub struct ZstdError(String);

fn named(code: usize) -> ZstdError {
    ZstdError(zstd_safe::get_error_name(code).into())
}

/// Makes frames. It holds the library's memory, which the first page allocates and later ones use.
pub struct Encoder(CCtx<'static>);

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    /// An encoder for one of zstd's levels.
    ///
    /// # Errors
    /// When the library has no memory or knows no such level.
    pub fn new(level: i32) -> Result<Self, ZstdError> {
        let mut context = CCtx::try_create().ok_or_else(|| ZstdError("no memory".into()))?;
        let parameters = [
            CParameter::CompressionLevel(level),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
            CParameter::Format(FrameFormat::Magicless),
        ];
        for parameter in parameters {
            context.set_parameter(parameter).map_err(named)?;
        }
        Ok(Self(context))
    }

    /// Encodes `page` and returns the frame's length, or `None` if it would exceed `limit_bytes`.
    pub fn encode(&mut self, page: &Page, out: &mut Block, limit_bytes: usize) -> Option<usize> {
        let room = out.len().min(limit_bytes);
        // With these settings only a lack of room can fail.
        self.0.compress2(&mut out[..room], page).ok()
    }
}

/// Decodes frames, in memory that is allocated once.
pub struct Decoder(DCtx<'static>);

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}

impl Decoder {
    /// Allocates the library's memory for decoding.
    ///
    /// # Errors
    /// When the library has no memory.
    pub fn new() -> Result<Self, ZstdError> {
        let mut context = DCtx::try_create().ok_or_else(|| ZstdError("no memory".into()))?;
        context
            .set_parameter(DParameter::Format(FrameFormat::Magicless))
            .map_err(named)?;
        Ok(Self(context))
    }

    /// Decodes a frame of exactly one page.
    ///
    /// When the bytes are not a frame of exactly one page; `page` then has arbitrary contents.
    pub fn decode(&mut self, frame: &[u8], page: &mut Page) -> Result<(), ZstdError> {
        match self.0.decompress(&mut page[..], frame).map_err(named)? {
            PAGE_BYTES => Ok(()),
            other => Err(ZstdError(format!(
                "the frame holds {other} bytes, not a page"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lz4::BLOCK_BOUND;

    #[test]
    fn pages_come_back_and_damage_is_no_panic() {
        let mut encoder = Encoder::new(1).expect("memory");
        let mut decoder = Decoder::new().expect("memory");
        let page: Page = std::array::from_fn(|at| (at * at / 97) as u8);
        let (mut out, mut back) = ([0; BLOCK_BOUND], [0; PAGE_BYTES]);
        let len = encoder.encode(&page, &mut out, BLOCK_BOUND).expect("room");
        decoder.decode(&out[..len], &mut back).expect("our frame");
        assert!(back == page);
        assert!(decoder.decode(&out[..len - 1], &mut back).is_err());
        assert!(decoder.decode(&[], &mut back).is_err());
        for at in 0..len {
            out[at] ^= 0x10;
            // A flipped bit may leave a frame; the store's checksum tells those.
            let _either = decoder.decode(&out[..len], &mut back);
            out[at] ^= 0x10;
        }
        assert_eq!(encoder.encode(&page, &mut out, len - 1), None);
    }
}

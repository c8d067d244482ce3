//! zstd frames of one page each, through the C library: the second tier, for pages that are not
//! touched any more.
//!
//! The frames have no magic, no length and no checksum, because the store keeps these already. They
//! are `ZSTD_f_zstd1_magicless` frames (zstd.h), which have to be read with the same setting.
//!
//! A page of 4 KiB has little before it to repeat, so [`train`] makes a dictionary of many pages. A
//! frame made with it refers to strings and code tables of the dictionary. Has `unsafe`: the call
//! of the library that trains, with parameters of our own.

use zstd_safe::zstd_sys::{ZDICT_fastCover_params_t, ZDICT_trainFromBuffer_fastCover};
use zstd_safe::{CCtx, CParameter, DCtx, DDict, DParameter, FrameFormat};

use crate::lz4::{Block, PAGE_BYTES, Page};

/// A refusal by the C library, in its words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("zstd: {0}")]
pub struct ZstdError(String);

impl ZstdError {
    pub(crate) fn new(reason: &str) -> Self {
        Self(reason.into())
    }
}

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

    /// Makes all further frames with `dictionary`, which is copied. They are decoded with the same
    /// dictionary only.
    ///
    /// # Errors
    /// When the library has no memory.
    pub fn use_dictionary(&mut self, dictionary: &[u8]) -> Result<(), ZstdError> {
        self.0.load_dictionary(dictionary).map_err(named)?;
        Ok(())
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
    /// # Errors
    /// If the bytes are not a frame of exactly one page; `page` then has arbitrary contents.
    pub fn decode(&mut self, frame: &[u8], page: &mut Page) -> Result<(), ZstdError> {
        whole_page(self.0.decompress(&mut page[..], frame))
    }

    /// Decodes a frame of exactly one page that was made with `dictionary`.
    ///
    /// # Errors
    /// If the bytes are not a frame of exactly one page; `page` then has arbitrary contents. A
    /// frame that was made with another dictionary may decode to another page without an error.
    pub fn decode_with(
        &mut self,
        frame: &[u8],
        dictionary: &Dictionary,
        page: &mut Page,
    ) -> Result<(), ZstdError> {
        let done = self
            .0
            .decompress_using_ddict(&mut page[..], frame, &dictionary.0);
        whole_page(done)
    }
}

fn whole_page(decoded: Result<usize, usize>) -> Result<(), ZstdError> {
    match decoded.map_err(named)? {
        PAGE_BYTES => Ok(()),
        other => Err(ZstdError(format!(
            "the frame holds {other} bytes, not a page"
        ))),
    }
}

/// A dictionary, prepared for decoding. Any number of decoders use it at once.
pub struct Dictionary(DDict<'static>);

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dictionary")
    }
}

impl Dictionary {
    /// Prepares the bytes that [`train`] made, of which it keeps a copy.
    ///
    /// # Errors
    /// When the library has no memory, or the bytes are not a dictionary.
    pub fn new(bytes: &[u8]) -> Result<Self, ZstdError> {
        match DDict::try_create(bytes) {
            Some(made) => Ok(Self(made)),
            None => Err(ZstdError("not a dictionary, or no memory".into())),
        }
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.0.sizeof()
    }
}

/// Trains a dictionary of at most `most_bytes` on `pages`. Takes about 80 milliseconds of processor
/// time and 2 MB of memory for 1,024 pages.
///
/// # Errors
/// When the library has no memory, or finds too little in the pages that repeats.
pub fn train(pages: &[Page], most_bytes: usize) -> Result<Vec<u8>, ZstdError> {
    let mut dictionary = vec![0; most_bytes];
    let lengths = vec![PAGE_BYTES; pages.len()];
    // Pieces of 256 bytes, found by what follows each 8. On real pages this was as good as the
    // library's own search for parameters, which takes ten times as long.
    // SAFETY: all zeros is a value of the structure, and means the library's choice.
    let mut parameters: ZDICT_fastCover_params_t = unsafe { std::mem::zeroed() };
    (parameters.k, parameters.d) = (256, 8);
    (parameters.f, parameters.accel) = (18, 1);
    // SAFETY: the pointers are good for the lengths given, which add up to the pages' bytes.
    let trained = unsafe {
        ZDICT_trainFromBuffer_fastCover(
            dictionary.as_mut_ptr().cast(),
            dictionary.len(),
            pages.as_ptr().cast(),
            lengths.as_ptr(),
            lengths.len() as u32,
            parameters,
        )
    };
    // An error is a number that no dictionary is as long as.
    if trained > most_bytes {
        return Err(named(trained));
    }
    dictionary.truncate(trained);
    Ok(dictionary)
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

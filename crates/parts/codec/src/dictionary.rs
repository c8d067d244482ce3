//! Pages packed with a dictionary of pages like them, in one of two forms.
//!
//! An LZ4 block that refers to the dictionary is shorter than one without, and faster to read,
//! because it has fewer and longer matches. A zstd frame is shorter still, but takes several times
//! as long to read. So a page becomes a frame only where that saves much, which is a minority of
//! real pages; they give most of what zstd would win on all.
//!
//! A form begins with a byte that tells the two apart: 1 in front of a block, and 0, which is the
//! first byte of every frame that [`zstd::Encoder`] makes.

use crate::lz4::{self, Block, BlockError, PAGE_BYTES, Page};
use crate::zstd::{self, ZstdError};

pub use crate::lz4::MOST_DICTIONARY_BYTES;
pub use crate::zstd::train;

const FRAME: u8 = 0;
const BLOCK: u8 = 1;
/// Bytes that a frame must save against a block. A lower bound makes real pages denser and their
/// reads slower. On one machine 24,000 of them took 1,520 bytes each with 448, 1,540 with 480 and
/// 1,587 with 544, and were read about a fifth faster with the last than with the first.
const LEAST_SAVED: usize = 456;
/// The lowest level at which frames are made. Against level 6, frames of level 9 took 2% less
/// memory in all and a fifth more time to make; level 15 took 5% less in four times the time.
const LEAST_LEVEL: i32 = 9;

/// Why bytes are not the form of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// The LZ4 block cannot be decoded.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The zstd frame cannot be decoded.
    #[error(transparent)]
    Frame(#[from] ZstdError),
    /// The first byte is that of neither.
    #[error("corrupt: a form of {form_bytes} bytes is neither a block nor a frame")]
    Kind {
        /// The length of the form.
        form_bytes: usize,
    },
}

/// A dictionary, prepared for decoding. Any number of threads use it at once.
#[derive(Debug)]
pub struct Dictionary {
    bytes: Box<[u8]>,
    frames: zstd::Dictionary,
}

impl Dictionary {
    /// Prepares the bytes that [`train`] made, of which it keeps copies.
    ///
    /// # Errors
    /// When the library has no memory, or the bytes are not a dictionary, or are more than
    /// [`MOST_DICTIONARY_BYTES`].
    pub fn new(bytes: &[u8]) -> Result<Self, ZstdError> {
        if bytes.len() > MOST_DICTIONARY_BYTES {
            return Err(ZstdError::new("a dictionary of more than 60 KiB"));
        }
        Ok(Self {
            bytes: bytes.into(),
            frames: zstd::Dictionary::new(bytes)?,
        })
    }

    /// The bytes that it was made of.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.frames.memory_bytes()
    }
}

/// Makes forms. It holds all working memory, so that no call allocates.
#[derive(Debug)]
pub struct Encoder {
    blocks: lz4::c::DictionaryState,
    frames: zstd::Encoder,
    frame: Box<Block>,
}

impl Encoder {
    /// An encoder with a dictionary, which makes frames at `level` or a higher one.
    ///
    /// # Errors
    /// When a library has no memory, or zstd knows no such level.
    pub fn new(dictionary: &[u8], level: i32) -> Result<Self, ZstdError> {
        let mut frames = zstd::Encoder::new(level.max(LEAST_LEVEL))?;
        frames.use_dictionary(dictionary)?;
        let blocks = lz4::c::DictionaryState::new(dictionary);
        let mut made = Self {
            blocks: blocks.ok_or_else(|| ZstdError::new("no memory"))?,
            frames,
            frame: Box::new([0; lz4::BLOCK_BOUND]),
        };
        // The library allocates with the first page.
        let _length = made
            .frames
            .encode(&[0; PAGE_BYTES], &mut made.frame, lz4::BLOCK_BOUND);
        Ok(made)
    }

    /// Encodes `page` and returns the form's length, or `None` if it would exceed `limit_bytes`.
    pub fn encode(&mut self, page: &Page, out: &mut Block, limit_bytes: usize) -> Option<usize> {
        let limit = limit_bytes.min(out.len());
        let (kind, block) = out[..limit].split_first_mut()?;
        *kind = BLOCK;
        let block = self.blocks.encode(page, block).map(|len| len + 1);
        let most = match block {
            None => limit,
            Some(block) => block.saturating_sub(LEAST_SAVED),
        };
        let Some(len) = self.frames.encode(page, &mut self.frame, most) else {
            return block;
        };
        out[..len].copy_from_slice(&self.frame[..len]);
        debug_assert_eq!(out[0], FRAME);
        Some(len)
    }
}

/// Decodes forms, for one thread. Its first block makes it allocate 64 KiB, unless
/// [`Decoder::prepare`] did.
#[derive(Debug)]
pub struct Decoder {
    frames: zstd::Decoder,
    /// A copy of the dictionary and, behind it, room for a page: an LZ4 block is decoded there,
    /// because that is faster than with a dictionary that lies elsewhere. Empty until needed.
    window: Vec<u8>,
}

impl Decoder {
    /// A decoder that has its memory, except that for blocks.
    ///
    /// # Errors
    /// When the library has no memory.
    pub fn new() -> Result<Self, ZstdError> {
        Ok(Self {
            frames: zstd::Decoder::new()?,
            window: Vec::new(),
        })
    }

    /// The decoder of frames that were made without a dictionary.
    pub fn frames(&mut self) -> &mut zstd::Decoder {
        &mut self.frames
    }

    /// Allocates what decoding with `dictionary` takes.
    pub fn prepare(&mut self, dictionary: &Dictionary) {
        self.window.clear();
        self.window
            .reserve_exact(dictionary.bytes.len() + PAGE_BYTES);
        self.window.extend_from_slice(&dictionary.bytes);
        self.window.resize(dictionary.bytes.len() + PAGE_BYTES, 0);
    }

    /// Decodes the form of a page that was made with `dictionary`, which is the same in all calls.
    ///
    /// # Errors
    /// When the bytes are not a form of exactly one page; `page` then has arbitrary contents. A
    /// form that was made with another dictionary may decode to another page without an error.
    pub fn decode(
        &mut self,
        form: &[u8],
        dictionary: &Dictionary,
        page: &mut Page,
    ) -> Result<(), FormError> {
        match form.split_first() {
            Some((&FRAME, _)) => self.frames.decode_with(form, &dictionary.frames, page)?,
            Some((&BLOCK, block)) => {
                if self.window.is_empty() {
                    self.prepare(dictionary);
                }
                lz4::c::decode_behind(block, &mut self.window)?;
                page.copy_from_slice(&self.window[dictionary.bytes.len()..]);
            }
            _ => {
                let form_bytes = form.len();
                return Err(FormError::Kind { form_bytes });
            }
        }
        Ok(())
    }
}

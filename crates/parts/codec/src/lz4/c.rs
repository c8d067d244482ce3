//! LZ4 of the C library. Has `unsafe`: calls into C.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use super::{Block, BlockError, PAGE_BYTES, Page};

/// `sizeof(LZ4_stream_t)` in lz4 1.9 and later (`LZ4_STREAM_MINSIZE`).
const STATE_BYTES: usize = (1 << 14) + 32;

/// The alignment that the library demands of its state.
#[repr(C, align(16))]
struct Memory([u8; STATE_BYTES]);

unsafe extern "C" {
    // The sys crate lacks these two declarations; the library has the functions (lz4.h).
    fn LZ4_compress_fast_extState(
        state: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_bytes: c_int,
        target_bytes: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_sizeofState() -> c_int;
}

/// The library's working memory, allocated once so that no call allocates.
pub struct State(Box<Memory>);

impl Default for State {
    fn default() -> Self {
        // SAFETY: takes and touches nothing.
        let needed = unsafe { LZ4_sizeofState() };
        assert!(
            needed as usize <= STATE_BYTES,
            "lz4 wants {needed} bytes of state"
        );
        Self(Box::new(Memory([0; STATE_BYTES])))
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("State")
    }
}

impl State {
    /// The encoder behind [`super::Encoder::encode`] for [`super::Codec::C`].
    pub fn encode(&mut self, page: &Page, out: &mut Block, limit_bytes: usize) -> Option<usize> {
        let room = out.len().min(limit_bytes) as c_int;
        // SAFETY: the state is large enough (checked in `default`) and aligned; the pointers are
        // good for the lengths given.
        let written = unsafe {
            LZ4_compress_fast_extState(
                (&raw mut *self.0).cast(),
                page.as_ptr().cast(),
                out.as_mut_ptr().cast(),
                PAGE_BYTES as c_int,
                room,
                1,
            )
        };
        (written > 0).then_some(written as usize)
    }
}

/// The level at which blocks with a dictionary are searched for matches. On real pages the highest
/// ones win one part in a hundred, in twice the time.
const LEVEL: c_int = 6;

unsafe extern "C" {
    // These the sys crate lacks, too (lz4.h, lz4hc.h).
    fn LZ4_createStreamHC() -> *mut Stream;
    fn LZ4_freeStreamHC(stream: *mut Stream) -> c_int;
    fn LZ4_resetStreamHC_fast(stream: *mut Stream, level: c_int);
    fn LZ4_loadDictHC(stream: *mut Stream, dictionary: *const c_char, bytes: c_int) -> c_int;
    fn LZ4_attach_HC_dictionary(working: *mut Stream, dictionary: *const Stream);
    fn LZ4_compress_HC_continue(
        stream: *mut Stream,
        source: *const c_char,
        target: *mut c_char,
        source_bytes: c_int,
        target_bytes: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe_usingDict(
        source: *const c_char,
        target: *mut c_char,
        source_bytes: c_int,
        target_bytes: c_int,
        dictionary: *const c_char,
        dictionary_bytes: c_int,
    ) -> c_int;
}

/// The library's `LZ4_streamHC_t`, which only it looks into.
#[repr(C)]
struct Stream {
    _private: [u8; 0],
}

/// A stream that belongs to us alone.
struct OwnStream(NonNull<Stream>);

// SAFETY: the library keeps nothing of a stream outside it, and each call has it for itself.
unsafe impl Send for OwnStream {}

impl OwnStream {
    fn new() -> Option<Self> {
        // SAFETY: takes nothing, and returns a stream or null.
        NonNull::new(unsafe { LZ4_createStreamHC() }).map(Self)
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and not used again.
        unsafe { LZ4_freeStreamHC(self.0.as_ptr()) };
    }
}

/// Makes blocks that refer to a dictionary, with the library's slow search for long matches.
pub struct DictionaryState {
    working: OwnStream,
    /// A stream into which the dictionary was loaded, which `working` refers to.
    loaded: OwnStream,
    /// The bytes that `loaded` refers to.
    _dictionary: Box<[u8]>,
}

impl std::fmt::Debug for DictionaryState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DictionaryState")
    }
}

impl DictionaryState {
    /// `None` when there is no memory.
    pub fn new(dictionary: &[u8]) -> Option<Self> {
        let made = Self {
            working: OwnStream::new()?,
            loaded: OwnStream::new()?,
            _dictionary: dictionary.into(),
        };
        let bytes = &made._dictionary;
        // SAFETY: the stream is ours, and the bytes live as long as it does.
        unsafe {
            LZ4_resetStreamHC_fast(made.loaded.0.as_ptr(), LEVEL);
            LZ4_loadDictHC(
                made.loaded.0.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len() as c_int,
            );
        }
        Some(made)
    }

    /// Encodes `page` and returns the block's length, or `None` if it is longer than `out`.
    pub fn encode(&mut self, page: &Page, out: &mut [u8]) -> Option<usize> {
        let stream = self.working.0.as_ptr();
        // SAFETY: the streams are ours; the reset makes the working one forget the page before,
        // which may be gone; the pointers are good for the lengths given.
        let written = unsafe {
            LZ4_resetStreamHC_fast(stream, LEVEL);
            LZ4_attach_HC_dictionary(stream, self.loaded.0.as_ptr());
            LZ4_compress_HC_continue(
                stream,
                page.as_ptr().cast(),
                out.as_mut_ptr().cast(),
                PAGE_BYTES as c_int,
                out.len() as c_int,
            )
        };
        (written > 0).then_some(written as usize)
    }
}

/// Decodes a block that refers to a dictionary into the last [`PAGE_BYTES`] of `window`, in front
/// of which the dictionary lies. The library reads that about 1.4 times as fast as a dictionary
/// that lies elsewhere.
pub fn decode_behind(block: &[u8], window: &mut [u8]) -> Result<(), BlockError> {
    let refused = BlockError::Refused {
        block_bytes: block.len(),
    };
    let len = c_int::try_from(block.len()).map_err(|_| refused)?;
    let before = window.len().checked_sub(PAGE_BYTES).ok_or(refused)?;
    // From this length on the library does not compare offsets with the dictionary's beginning.
    if before > super::MOST_DICTIONARY_BYTES {
        return Err(refused);
    }
    let start = window.as_mut_ptr();
    // SAFETY: the pointers are good for the lengths given; the "safe" decoder keeps to them.
    let read = unsafe {
        LZ4_decompress_safe_usingDict(
            block.as_ptr().cast(),
            start.add(before).cast(),
            len,
            PAGE_BYTES as c_int,
            start.cast(),
            before as c_int,
        )
    };
    whole_page(read, refused)
}

/// The decoder behind [`super::decode`].
pub fn decode(block: &[u8], page: &mut Page) -> Result<(), BlockError> {
    let refused = BlockError::Refused {
        block_bytes: block.len(),
    };
    let len = c_int::try_from(block.len()).map_err(|_| refused)?;
    // SAFETY: the pointers are good for the lengths given; the "safe" decoder keeps to them.
    let read = unsafe {
        lz4_sys::LZ4_decompress_safe(
            block.as_ptr().cast(),
            page.as_mut_ptr().cast(),
            len,
            PAGE_BYTES as c_int,
        )
    };
    whole_page(read, refused)
}

fn whole_page(read: c_int, refused: BlockError) -> Result<(), BlockError> {
    match usize::try_from(read) {
        Err(_) => Err(refused),
        Ok(PAGE_BYTES) => Ok(()),
        Ok(page_bytes) => Err(BlockError::Length { page_bytes }),
    }
}

//! LZ4 of the C library. Has `unsafe`: calls into C.

use std::ffi::{c_char, c_int, c_void};

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
    match usize::try_from(read) {
        Err(_) => Err(refused),
        Ok(PAGE_BYTES) => Ok(()),
        Ok(page_bytes) => Err(BlockError::Length { page_bytes }),
    }
}

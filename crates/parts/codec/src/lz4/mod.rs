//! LZ4 blocks of one page of 4 KiB each, in the standard block format (lz4 project,
//! `doc/lz4_Block_format.md`), which any LZ4 reads.
//!
//! There are two encoders behind the same calls: [`Codec::Page`], this crate's own, made for pages,
//! and [`Codec::C`], the C library, which it is measured against. The C library decodes what either
//! writes: a decoder of our own was as fast on pages but not faster, so it was left out.

pub(crate) mod c;
mod encode;
mod lanes;

/// Bytes that a block decodes to, always.
pub const PAGE_BYTES: usize = 4096;

/// Room for any block, and for the bytes that wide copies write beyond it.
pub const BLOCK_BOUND: usize = PAGE_BYTES + PAGE_BYTES / 255 + 16 + 64;

/// The longest dictionary that a block may refer to: offsets have 16 bits, and reach its first byte
/// from the last one of a page.
pub const MOST_DICTIONARY_BYTES: usize = (1 << 16) - PAGE_BYTES;

/// The buffer that a block is encoded into.
pub type Block = [u8; BLOCK_BOUND];

/// The bytes of one page.
pub type Page = [u8; PAGE_BYTES];

/// Which encoder makes the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// The C library, lz4 1.10.
    C,
    /// This crate's encoder, with the widest instructions that the processor has.
    Page,
    /// This crate's encoder without vector instructions. It makes the same blocks, for comparison.
    PagePlain,
}

/// Why bytes are not a block of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The block decodes to more or less than a page.
    #[error("corrupt: the block holds {page_bytes} bytes or more, not {PAGE_BYTES}")]
    Length {
        /// How many bytes had been decoded when this was noticed.
        page_bytes: usize,
    },
    /// The C library refused the block, and does not say why.
    #[error("corrupt: the C library refuses the block of {block_bytes} bytes")]
    Refused {
        /// The length of the block.
        block_bytes: usize,
    },
}

/// Makes blocks. It holds the encoder's table, so that no call allocates.
#[derive(Debug)]
pub struct Encoder {
    codec: Codec,
    table: Box<encode::Table>,
    /// `Some` only for the C library.
    state: Option<c::State>,
}

impl Encoder {
    /// An encoder of the given kind.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            table: Box::new([0; encode::TABLE_ENTRIES]),
            state: (codec == Codec::C).then(c::State::default),
        }
    }

    /// Encodes `page` and returns the block's length, or `None` if it would exceed `limit_bytes`.
    /// The same page always gives the same block.
    pub fn encode(&mut self, page: &Page, out: &mut Block, limit_bytes: usize) -> Option<usize> {
        if let Some(state) = &mut self.state {
            return state.encode(page, out, limit_bytes);
        }
        match self.codec {
            Codec::C | Codec::Page => encode::fastest(page, &mut self.table, out, limit_bytes),
            Codec::PagePlain => encode::plain(page, &mut self.table, out, limit_bytes),
        }
    }
}

/// Decodes a block into `page`. Never reads past `block` nor writes past `page`, whatever the
/// bytes.
///
/// # Errors
/// If `block` is not exactly one page; `page` then has arbitrary contents.
pub fn decode(block: &[u8], page: &mut Page) -> Result<(), BlockError> {
    c::decode(block, page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few and small, so that Miri can run them; tests/lz4.rs and tests/lz4_pages.rs do the rest.
    #[test]
    fn pages_come_back_without_the_c_library() {
        let mut out = [0; BLOCK_BOUND];
        for codec in [Codec::Page, Codec::PagePlain] {
            let mut encoder = Encoder::new(codec);
            for period in [1, 2, 7, 16, 100, 1000, PAGE_BYTES] {
                let mut state = period as u32;
                let piece: Vec<u8> = (0..period)
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (state >> 24) as u8
                    })
                    .collect();
                let page: Page = std::array::from_fn(|at| piece[at % period]);
                let len = encoder.encode(&page, &mut out, BLOCK_BOUND).expect("room");
                let mut back = [1; PAGE_BYTES];
                let read = lz4_flex::block::decompress_into(&out[..len], &mut back);
                assert!(matches!(read, Ok(PAGE_BYTES)), "{read:?}");
                assert!(back == page, "period {period}");
            }
        }
    }
}

//! LZ4 blocks of one page of 4 KiB each, in the standard block format (lz4 project,
//! `doc/lz4_Block_format.md`), which any LZ4 reads.
//!
//! Two encoders stand behind the same calls: [`Codec::Page`], ours, made for pages, and
//! [`Codec::C`], the C library, which is its yardstick. The C library decodes what either writes: a
//! decoder of ours was as fast on pages and no faster, so there is none.

mod c;
mod encode;
mod lanes;

/// What a block holds.
pub const PAGE_BYTES: usize = 4096;

/// Room for any block and for the slack that wide copies need behind it.
pub const BLOCK_BOUND: usize = PAGE_BYTES + PAGE_BYTES / 255 + 16 + 64;

/// Where a block is written.
pub type Block = [u8; BLOCK_BOUND];

/// A page.
pub type Page = [u8; PAGE_BYTES];

/// Whose encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// The C library, lz4 1.10.
    C,
    /// Ours, with the widest instructions that this processor has.
    Page,
    /// Ours without vector instructions: the same blocks, for comparison.
    PagePlain,
}

/// Why bytes are no block of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// It holds more or less than a page.
    #[error("corrupt: the block holds {page_bytes} bytes or more, not {PAGE_BYTES}")]
    Length {
        /// How many bytes were there when it was noticed.
        page_bytes: usize,
    },
    /// The C library refused it, and does not say why.
    #[error("corrupt: the C library refuses the block of {block_bytes} bytes")]
    Refused {
        /// Its length.
        block_bytes: usize,
    },
}

/// Makes blocks. Holds the table, so that no call allocates.
#[derive(Debug)]
pub struct Encoder {
    codec: Codec,
    table: Box<encode::Table>,
    /// There for the C library alone.
    state: Option<c::State>,
}

impl Encoder {
    /// An encoder of one kind.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            table: Box::new([0; encode::TABLE_ENTRIES]),
            state: (codec == Codec::C).then(c::State::default),
        }
    }

    /// Encodes `page` and returns the block's length, or nothing when it would be over
    /// `limit_bytes`. The same page always gives the same block.
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
/// When `block` is not one page exactly; `page` then holds anything.
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

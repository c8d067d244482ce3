//! LZ4 blocks of one page of 4 KiB each, in the standard block format (lz4 project,
//! `doc/lz4_Block_format.md`), which any LZ4 reads.
//!
//! Two codecs stand behind the same calls: [`Codec::Page`], ours, made for pages, and [`Codec::C`],
//! the C library, which is its yardstick and its oracle. Each reads what the other writes.

mod c;
mod decode;
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

/// Whose code.
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
    /// The block ends inside a sequence.
    #[error("truncated: the block of {block_bytes} bytes ends inside a sequence")]
    Truncated {
        /// Its length.
        block_bytes: usize,
    },
    /// A match begins before the page.
    #[error("corrupt: at byte {page_byte} of the page a match reaches {offset} bytes back")]
    Offset {
        /// Where in the page.
        page_byte: usize,
        /// How far it reaches.
        offset: usize,
    },
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
    state: c::State,
}

impl Encoder {
    /// An encoder of one kind.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            table: Box::new([0; encode::TABLE_ENTRIES]),
            state: c::State::default(),
        }
    }

    /// Encodes `page` and returns the block's length, or nothing when it would be over
    /// `limit_bytes`. The same page always gives the same block.
    pub fn encode(&mut self, page: &Page, out: &mut Block, limit_bytes: usize) -> Option<usize> {
        match self.codec {
            Codec::C => self.state.encode(page, out, limit_bytes),
            Codec::Page => encode::fastest(page, &mut self.table, out, limit_bytes),
            Codec::PagePlain => encode::plain(page, &mut self.table, out, limit_bytes),
        }
    }
}

/// Decodes a block into `page`. Never reads past `block` nor writes past `page`, whatever the bytes.
///
/// # Errors
/// When `block` is not one page exactly; `page` then holds anything.
pub fn decode(codec: Codec, block: &[u8], page: &mut Page) -> Result<(), BlockError> {
    match codec {
        Codec::C => c::decode(block, page),
        Codec::Page => decode::fastest(block, page),
        Codec::PagePlain => decode::careful(block, page, 0, 0),
    }
}

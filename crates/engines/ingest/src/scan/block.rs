//! A piece of text that a source passes to the scanner.

/// Bytes in front of a block's text and after it, so that wide loads stay inside.
pub const MARGIN: usize = 64;

/// Longest line that can be a row, in bytes.
pub const MAX_LINE: usize = 64 * 1024;

/// Whole lines: `bytes[start..end]`, each ended by a line feed.
#[derive(Debug, Default)]
pub struct Block {
    /// The text with its margins.
    pub bytes: Vec<u8>,
    /// Index of the text's first byte, at least [`MARGIN`].
    pub start: usize,
    /// Index after the text; at least [`MARGIN`] bytes follow.
    pub end: usize,
}

impl Block {
    /// A block that holds `text`; a last line without its line feed gets one.
    pub fn from_text(text: &[u8]) -> Block {
        let mut bytes = vec![0; MARGIN];
        bytes.extend_from_slice(text);
        if text.last().is_some_and(|&last| last != b'\n') {
            bytes.push(b'\n');
        }
        let end = bytes.len();
        bytes.resize(end + MARGIN, 0);
        Block {
            bytes,
            start: MARGIN,
            end,
        }
    }

    /// The lines without the margins.
    pub fn text(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

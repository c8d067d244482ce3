//! Dictionary codes of a string column, block by block.

use bytes::Bytes;
use parquet::basic::Encoding;

use super::bits::highest;
use super::hybrid::HybridDecoder;
use super::pages::{Pages, PlainPage, code_width};
use super::{BLOCK_ROWS, ReadError};

/// What one call of [`CodeReader::next`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeBlock {
    /// The column chunk is at its end.
    End,
    /// So many rows, all with this code.
    Same(usize, u32),
    /// So many rows, their codes at the front of the buffer.
    Codes(usize),
}

/// Reads the codes of one column chunk.
pub struct CodeReader {
    pages: Pages,
    page: Option<HybridDecoder>,
    rows_left: usize,
    dictionary: (Bytes, usize),
}

impl CodeReader {
    pub(super) fn new(mut pages: Pages) -> Result<Self, ReadError> {
        let dictionary = match pages.next()? {
            Some(PlainPage::Dictionary { bytes, len }) => (bytes, len),
            Some(PlainPage::Data { encoding, .. }) => {
                return Err(ReadError::unsupported(format!(
                    "a string column in {encoding}"
                )));
            }
            None => (Bytes::new(), 0),
        };
        Ok(Self {
            pages,
            page: None,
            rows_left: 0,
            dictionary,
        })
    }

    /// The dictionary page of this chunk as stored, and how many strings it says it holds.
    pub fn dictionary(&self) -> (&Bytes, usize) {
        (&self.dictionary.0, self.dictionary.1)
    }

    /// Reads up to [`BLOCK_ROWS`] codes; fewer at the end of a page.
    ///
    /// # Errors
    /// A damaged page, a code outside of the dictionary, a page in another encoding.
    pub fn next(&mut self, codes: &mut [u32; BLOCK_ROWS]) -> Result<CodeBlock, ReadError> {
        while self.rows_left == 0 {
            match self.pages.next()? {
                None => return Ok(CodeBlock::End),
                Some(PlainPage::Dictionary { .. }) => {
                    return Err(ReadError::damaged("second dictionary in a column chunk"));
                }
                Some(PlainPage::Data {
                    bytes,
                    rows,
                    encoding,
                }) => {
                    if !matches!(
                        encoding,
                        Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
                    ) {
                        return Err(ReadError::unsupported(format!(
                            "a string column in {encoding}"
                        )));
                    }
                    let (width, runs) = code_width(&bytes)?;
                    self.page = Some(HybridDecoder::new(runs, width)?);
                    self.rows_left = rows;
                }
            }
        }
        let Some(page) = &mut self.page else {
            return Ok(CodeBlock::End);
        };
        let rows = self.rows_left.min(BLOCK_ROWS);
        self.rows_left -= rows;
        let block = match page.take_same(rows)? {
            Some(code) => CodeBlock::Same(rows, code),
            None => {
                page.read(&mut codes[..rows])?;
                CodeBlock::Codes(rows)
            }
        };
        let highest = match block {
            CodeBlock::Same(_, code) => code,
            _ => highest(&codes[..rows]),
        };
        if highest as usize >= self.dictionary.1 {
            return Err(ReadError::damaged(format!(
                "code {highest} in a dictionary of {} strings",
                self.dictionary.1
            )));
        }
        Ok(block)
    }
}

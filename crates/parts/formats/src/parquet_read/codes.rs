//! Reads the dictionary codes of a string column, block by block.

use bytes::Bytes;

use super::bits::highest;
use super::hybrid::HybridDecoder;
use super::pages::{Pages, PlainPage, code_width};
use super::{BLOCK_ROWS, ReadError};

/// What a call of [`CodeReader::next`] has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeBlock {
    /// The column chunk has no more pages. The caller checks whether it had as many rows as the row
    /// group.
    End,
    /// So many rows, all of which have this code.
    Same(usize, u32),
    /// So many rows, whose codes stand at the front of the buffer.
    Codes(usize),
}

/// Reads the codes of one column chunk, all of them checked to be in its dictionary.
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

    /// The decompressed dictionary page of this chunk, and how many strings its header promises.
    /// [`super::StringDictionary::new`] checks that promise.
    pub fn dictionary(&self) -> (&Bytes, usize) {
        (&self.dictionary.0, self.dictionary.1)
    }

    /// Reads up to [`BLOCK_ROWS`] codes, and fewer only at the end of a page.
    ///
    /// # Errors
    /// A damaged page, a code outside of the dictionary, a page in another encoding.
    pub fn next(&mut self, codes: &mut [u32; BLOCK_ROWS]) -> Result<CodeBlock, ReadError> {
        while self.rows_left == 0 {
            if !self.enter_page()? {
                return Ok(CodeBlock::End);
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
        // Checked here, once for a block, so that users may index tables by codes without checks of
        // their own.
        match block {
            CodeBlock::Same(_, code) => self.check(code)?,
            _ => self.check(highest(&codes[..rows]))?,
        }
        Ok(block)
    }

    /// Fills `codes` with the next codes, across the ends of pages. If they are all the same and
    /// lie in one run, `codes` stays as it is and that code is returned.
    ///
    /// # Errors
    /// As [`CodeReader::next`], and when the column chunk has fewer rows left.
    pub fn read(&mut self, codes: &mut [u32]) -> Result<Option<u32>, ReadError> {
        let mut done = 0;
        while done < codes.len() {
            self.enter_rows()?;
            let Some(page) = &mut self.page else { break };
            let rows = (codes.len() - done).min(self.rows_left);
            self.rows_left -= rows;
            if rows == codes.len()
                && let Some(code) = page.take_same(rows)?
            {
                self.check(code)?;
                return Ok(Some(code));
            }
            page.read(&mut codes[done..done + rows])?;
            done += rows;
        }
        if !codes.is_empty() {
            self.check(highest(codes))?;
        }
        Ok(None)
    }

    /// Skips the next `rows` codes. Whole pages are skipped without being decompressed.
    ///
    /// # Errors
    /// As [`CodeReader::read`].
    pub fn skip(&mut self, mut rows: usize) -> Result<(), ReadError> {
        while rows > 0 {
            if self.rows_left == 0 {
                rows -= self.pages.skip(rows)?;
                if rows == 0 {
                    break;
                }
                self.enter_rows()?;
            }
            let Some(page) = &mut self.page else { break };
            let count = rows.min(self.rows_left);
            page.skip(count)?;
            self.rows_left -= count;
            rows -= count;
        }
        Ok(())
    }

    /// Goes on until the current page has rows left.
    fn enter_rows(&mut self) -> Result<(), ReadError> {
        while self.rows_left == 0 {
            if !self.enter_page()? {
                return Err(ReadError::damaged(
                    "a column has fewer rows than the one beside it",
                ));
            }
        }
        Ok(())
    }

    /// Goes to the next page. False if there are no more.
    fn enter_page(&mut self) -> Result<bool, ReadError> {
        match self.pages.next()? {
            None => Ok(false),
            Some(PlainPage::Dictionary { .. }) => {
                Err(ReadError::damaged("second dictionary in a column chunk"))
            }
            Some(PlainPage::Data {
                bytes,
                rows,
                encoding,
                ..
            }) => {
                if !encoding.is_dictionary() {
                    return Err(ReadError::unsupported(format!(
                        "a string column in {encoding}"
                    )));
                }
                let (width, runs) = code_width(&bytes)?;
                self.page = Some(HybridDecoder::new(runs, width)?);
                self.rows_left = rows;
                Ok(true)
            }
        }
    }

    fn check(&self, highest: u32) -> Result<(), ReadError> {
        if highest as usize >= self.dictionary.1 {
            return Err(ReadError::damaged(format!(
                "code {highest} in a dictionary of {} strings",
                self.dictionary.1
            )));
        }
        Ok(())
    }
}

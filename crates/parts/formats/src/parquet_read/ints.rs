//! Reads the values of an integer column, block by block, in any encoding that integers have here.

use bytes::Bytes;

use super::bits::highest;
use super::codings::Encoding;
use super::delta::DeltaDecoder;
use super::file::ColumnKind;
use super::hybrid::HybridDecoder;
use super::pages::{Pages, PlainPage, code_width};
use super::{BLOCK_ROWS, ReadError};

/// Reads the integers of one column chunk as `i64`. Those of an unsigned column of 64 bits have the
/// same bits.
pub struct IntReader {
    pages: Pages,
    kind: ColumnKind,
    page: PageValues,
    rows_left: usize,
    dictionary: Vec<i64>,
    codes: Box<[u32; BLOCK_ROWS]>,
}

/// What a call of [`IntReader::read_codes`] has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodedInts {
    /// All requested values have this code of [`IntReader::dictionary`].
    Same(u32),
    /// The buffer has codes of [`IntReader::dictionary`], all of them checked to be in it.
    Codes,
    /// The next values lie in more than one page, or are not codes. Nothing was consumed.
    Other,
}

enum PageValues {
    None,
    Codes(HybridDecoder),
    Plain(Bytes, usize),
    Delta(DeltaDecoder),
}

impl IntReader {
    pub(super) fn new(pages: Pages, kind: ColumnKind) -> Self {
        Self {
            pages,
            kind,
            page: PageValues::None,
            rows_left: 0,
            dictionary: Vec::new(),
            codes: Box::new([0; BLOCK_ROWS]),
        }
    }

    /// Fills `out` with the next values.
    ///
    /// # Errors
    /// A page is damaged or in an encoding that is not read here, a value is outside of the
    /// column's declared type, or the column chunk has fewer values left.
    pub fn read(&mut self, out: &mut [i64]) -> Result<(), ReadError> {
        let mut done = 0;
        while done < out.len() {
            if self.rows_left == 0 {
                self.enter_page()?;
                continue;
            }
            let rows = (out.len() - done).min(self.rows_left).min(BLOCK_ROWS);
            self.read_rows(&mut out[done..done + rows])?;
            self.rows_left -= rows;
            done += rows;
        }
        Ok(())
    }

    /// The integers that codes of this column chunk stand for. Empty before the first page was
    /// read.
    pub fn dictionary(&self) -> &[i64] {
        &self.dictionary
    }

    /// Fills `codes` with the next codes, if all of them lie in one page of codes.
    ///
    /// # Errors
    /// As [`IntReader::read`].
    pub fn read_codes(&mut self, codes: &mut [u32]) -> Result<CodedInts, ReadError> {
        while self.rows_left == 0 && !codes.is_empty() {
            self.enter_page()?;
        }
        // Codes of two pages could be joined, but the pages may differ in their encoding. The
        // caller reads values across such an end.
        let PageValues::Codes(decoder) = &mut self.page else {
            return Ok(CodedInts::Other);
        };
        if self.rows_left < codes.len() {
            return Ok(CodedInts::Other);
        }
        self.rows_left -= codes.len();
        if let Some(code) = decoder.take_same(codes.len())? {
            look_up(&self.dictionary, code)?;
            return Ok(CodedInts::Same(code));
        }
        decoder.read(codes)?;
        check(&self.dictionary, codes)?;
        Ok(CodedInts::Codes)
    }

    /// Skips the next `rows` values. Whole pages are skipped without being decompressed.
    ///
    /// # Errors
    /// As [`IntReader::read`].
    pub fn skip(&mut self, mut rows: usize) -> Result<(), ReadError> {
        let mut scratch = [0; 128];
        while rows > 0 {
            if self.rows_left == 0 {
                rows -= self.pages.skip(rows)?;
                if rows > 0 {
                    self.enter_page()?;
                }
                continue;
            }
            let mut count = rows.min(self.rows_left);
            match &mut self.page {
                PageValues::Codes(decoder) => decoder.skip(count)?,
                PageValues::Plain(_, at) => *at += count * self.kind.stored_bytes(),
                // A value is only known when all differences before it are.
                PageValues::None | PageValues::Delta(_) => {
                    count = count.min(scratch.len());
                    self.read_rows(&mut scratch[..count])?;
                }
            }
            self.rows_left -= count;
            rows -= count;
        }
        Ok(())
    }

    fn enter_page(&mut self) -> Result<(), ReadError> {
        match self.pages.next()? {
            None => Err(ReadError::damaged(
                "a column has fewer rows than the one beside it",
            )),
            Some(PlainPage::Dictionary { bytes, len }) => {
                let size = self.kind.stored_bytes();
                if len.checked_mul(size) != Some(bytes.len()) {
                    return Err(ReadError::damaged(format!(
                        "dictionary of {len} integers in {} bytes",
                        bytes.len()
                    )));
                }
                self.dictionary = vec![0; len];
                self.kind.widen(&bytes, &mut self.dictionary)
            }
            Some(PlainPage::Data {
                bytes,
                rows,
                encoding,
                ..
            }) => {
                self.page = match encoding {
                    coded if coded.is_dictionary() => {
                        let (width, runs) = code_width(&bytes)?;
                        PageValues::Codes(HybridDecoder::new(runs, width)?)
                    }
                    Encoding::PLAIN => PageValues::Plain(bytes, 0),
                    Encoding::DELTA_BINARY_PACKED => PageValues::Delta(DeltaDecoder::new(bytes)?),
                    other => {
                        return Err(ReadError::unsupported(format!(
                            "an integer column in {other}"
                        )));
                    }
                };
                self.rows_left = rows;
                Ok(())
            }
        }
    }

    /// Reads at most a block of the current page, which has that many rows.
    fn read_rows(&mut self, out: &mut [i64]) -> Result<(), ReadError> {
        match &mut self.page {
            PageValues::None => Err(ReadError::damaged("values outside of a page")),
            PageValues::Codes(decoder) => {
                if let Some(code) = decoder.take_same(out.len())? {
                    out.fill(look_up(&self.dictionary, code)?);
                    return Ok(());
                }
                let codes = &mut self.codes[..out.len()];
                decoder.read(codes)?;
                map_codes(&self.dictionary, codes, out)
            }
            PageValues::Plain(bytes, at) => {
                let end = *at + out.len() * self.kind.stored_bytes();
                let stored = bytes.get(*at..end).ok_or_else(|| {
                    ReadError::damaged(format!("plain page needs {end} bytes, has {}", bytes.len()))
                })?;
                *at = end;
                self.kind.widen(stored, out)
            }
            PageValues::Delta(decoder) => {
                decoder.read(out)?;
                // Differences of 32-bit columns are modulo 2^32 and were added in 64 bits, so only
                // the lower half of a sum is the value.
                if self.kind.stored_bytes() == 4 {
                    for value in out.iter_mut() {
                        *value = i64::from(*value as i32);
                    }
                }
                self.kind.narrow(out)
            }
        }
    }
}

fn map_codes(dictionary: &[i64], codes: &[u32], out: &mut [i64]) -> Result<(), ReadError> {
    check(dictionary, codes)?;
    for (value, code) in out.iter_mut().zip(codes) {
        *value = dictionary[*code as usize];
    }
    Ok(())
}

fn check(dictionary: &[i64], codes: &[u32]) -> Result<(), ReadError> {
    if codes.is_empty() {
        return Ok(());
    }
    look_up(dictionary, highest(codes)).map(|_| ())
}

fn look_up(dictionary: &[i64], code: u32) -> Result<i64, ReadError> {
    dictionary.get(code as usize).copied().ok_or_else(|| {
        ReadError::damaged(format!(
            "code {code} in a dictionary of {} values",
            dictionary.len()
        ))
    })
}

//! Reads the values of any flat column of integers or strings, with NULLs and in all encodings that
//! such columns have. This is the general way, for files of other writers. A page is decoded as a
//! whole when it is entered, and values are handed out from there.

use bytes::Bytes;

use super::ReadError;
use super::codings::Encoding;
use super::delta::DeltaDecoder;
use super::dictionary::StringDictionary;
use super::hybrid::HybridDecoder;
use super::metadata::{Leaf, Meaning, Physical};
use super::pages::{Pages, PlainPage, code_width};

/// Reads one column chunk value by value.
pub struct ValueReader {
    pages: Pages,
    size: usize,
    unsigned32: bool,
    strings: Option<StringDictionary>,
    integers: Vec<i64>,
    page: Page,
}

/// The current page, decoded. Values are in their order, without those that are NULL.
#[derive(Default)]
struct Page {
    rows: usize,
    /// How many rows have been handed out.
    at: usize,
    /// For each row 1 if it has a value and 0 if it is NULL. Empty if all rows have one.
    present: Vec<u32>,
    integers: std::vec::IntoIter<i64>,
    texts: std::vec::IntoIter<Bytes>,
}

impl ValueReader {
    /// The caller has checked that `leaf` is flat and stored as integers or strings.
    pub(super) fn new(pages: Pages, leaf: &Leaf) -> Self {
        let unsigned = matches!(leaf.meaning, Meaning::Integer { signed: false, .. });
        Self {
            pages,
            size: match leaf.physical {
                Physical::Int32 => 4,
                Physical::Int64 => 8,
                Physical::ByteArray | Physical::Other => 0,
            },
            unsigned32: unsigned && leaf.physical == Physical::Int32,
            strings: None,
            integers: Vec::new(),
            page: Page::default(),
        }
    }

    /// Appends the next `rows` integers to `out`, `None` for NULL.
    ///
    /// # Errors
    /// A page is damaged or in an encoding that is not read here, or the column chunk has fewer
    /// rows left.
    pub fn integers(&mut self, rows: usize, out: &mut Vec<Option<i64>>) -> Result<(), ReadError> {
        if self.size == 0 {
            return Err(ReadError::unsupported("a column of strings as integers"));
        }
        self.each(rows, |page, is_there| {
            let value = if is_there { page.integers.next() } else { None };
            out.push(value);
            value.is_some() == is_there
        })
    }

    /// Appends the next `rows` strings to `out`, `None` for NULL.
    ///
    /// # Errors
    /// As [`ValueReader::integers`].
    pub fn texts(&mut self, rows: usize, out: &mut Vec<Option<Bytes>>) -> Result<(), ReadError> {
        if self.size != 0 {
            return Err(ReadError::unsupported("a column of integers as strings"));
        }
        self.each(rows, |page, is_there| {
            let value = if is_there { page.texts.next() } else { None };
            let as_stated = value.is_some() == is_there;
            out.push(value);
            as_stated
        })
    }

    /// Calls `take` for each of the next `rows` rows with whether it has a value. `take` returns
    /// whether the page had one left.
    fn each(
        &mut self,
        rows: usize,
        mut take: impl FnMut(&mut Page, bool) -> bool,
    ) -> Result<(), ReadError> {
        for done in 0..rows {
            while self.page.at == self.page.rows {
                if !self.enter_page()? {
                    return Err(ReadError::damaged(format!(
                        "a column ends {} values too early",
                        rows - done
                    )));
                }
            }
            let at = self.page.at;
            let is_there = self.page.present.get(at).is_none_or(|level| *level > 0);
            self.page.at += 1;
            if !take(&mut self.page, is_there) {
                return Err(ReadError::damaged("a page has fewer values than rows"));
            }
        }
        Ok(())
    }

    /// Decodes the next data page, which may have no rows. False if there are no more.
    fn enter_page(&mut self) -> Result<bool, ReadError> {
        match self.pages.next()? {
            None => Ok(false),
            Some(PlainPage::Dictionary { bytes, len }) => {
                if self.size == 0 {
                    self.strings = Some(StringDictionary::new(bytes, len)?);
                } else {
                    self.integers = self.plain_integers(&bytes, len)?;
                }
                // The chunk has one dictionary, so this recursion is one deep.
                self.enter_page()
            }
            Some(PlainPage::Data {
                bytes,
                rows,
                encoding,
                present,
            }) => {
                let mut page = Page {
                    rows,
                    ..Page::default()
                };
                if let Some(levels) = present {
                    page.present = vec![0; rows];
                    HybridDecoder::new(levels, 1)?.read(&mut page.present)?;
                }
                // Only rows that have a value are stored, so that the number of values depends on
                // the levels and not on the header alone.
                let missing = page.present.iter().filter(|level| **level == 0).count();
                let values = rows - missing;
                if self.size == 0 {
                    page.texts = self.page_texts(bytes, values, encoding)?.into_iter();
                } else {
                    page.integers = self.page_integers(bytes, values, encoding)?.into_iter();
                }
                self.page = page;
                Ok(true)
            }
        }
    }

    fn page_integers(
        &self,
        bytes: Bytes,
        values: usize,
        encoding: Encoding,
    ) -> Result<Vec<i64>, ReadError> {
        match encoding {
            Encoding::PLAIN => self.plain_integers(&bytes, values),
            Encoding::BYTE_STREAM_SPLIT => {
                let (size, total) = (self.size, self.room(&bytes, values)?);
                // The first bytes of all values come first, then the second bytes of all.
                let joined: Vec<u8> = (0..total)
                    .map(|at| bytes[at % size * values + at / size])
                    .collect();
                self.plain_integers(&joined, values)
            }
            Encoding::DELTA_BINARY_PACKED => {
                let mut integers = vec![0; at_most(values, &bytes)?];
                DeltaDecoder::new(bytes)?.read(&mut integers)?;
                if self.size == 4 {
                    // Differences are modulo the width of the column, and were added up in 64 bits.
                    integers
                        .iter_mut()
                        .for_each(|value| *value = i64::from(*value as i32));
                }
                self.as_meant(&mut integers);
                Ok(integers)
            }
            coded if coded.is_dictionary() => {
                let integers = codes(&bytes, values)?.into_iter().map(|code| {
                    let value = self.integers.get(code as usize).copied();
                    value.ok_or_else(|| outside(code, self.integers.len()))
                });
                integers.collect()
            }
            other => Err(ReadError::unsupported(format!(
                "an integer column in {other}"
            ))),
        }
    }

    fn plain_integers(&self, bytes: &[u8], values: usize) -> Result<Vec<i64>, ReadError> {
        let bytes = &bytes[..self.room(bytes, values)?];
        let mut integers: Vec<i64> = if self.size == 8 {
            let words = bytes.as_chunks::<8>().0.iter();
            words.map(|word| i64::from_le_bytes(*word)).collect()
        } else {
            let words = bytes.as_chunks::<4>().0.iter();
            words
                .map(|word| i64::from(i32::from_le_bytes(*word)))
                .collect()
        };
        self.as_meant(&mut integers);
        Ok(integers)
    }

    /// How many bytes so many stored integers take, if `bytes` has them.
    fn room(&self, bytes: &[u8], values: usize) -> Result<usize, ReadError> {
        let total = values.checked_mul(self.size);
        total.filter(|total| *total <= bytes.len()).ok_or_else(|| {
            ReadError::damaged(format!("{values} integers in {} bytes", bytes.len()))
        })
    }

    /// Turns the upper half of unsigned integers of 32 bits, which looks negative as it is stored,
    /// into what it means.
    fn as_meant(&self, integers: &mut [i64]) {
        if self.unsigned32 {
            integers
                .iter_mut()
                .for_each(|value| *value &= i64::from(u32::MAX));
        }
    }

    fn page_texts(
        &self,
        bytes: Bytes,
        values: usize,
        encoding: Encoding,
    ) -> Result<Vec<Bytes>, ReadError> {
        match encoding {
            Encoding::PLAIN => plain_texts(bytes, values),
            Encoding::DELTA_LENGTH_BYTE_ARRAY => texts_behind_lengths(bytes, values),
            Encoding::DELTA_BYTE_ARRAY => texts_by_prefix(bytes, values),
            coded if coded.is_dictionary() => {
                let dictionary = self.strings.as_ref();
                let texts = codes(&bytes, values)?.into_iter().map(|code| {
                    let text = dictionary.and_then(|words| words.slice(code as usize));
                    let len = dictionary.map_or(0, StringDictionary::len);
                    text.ok_or_else(|| outside(code, len))
                });
                texts.collect()
            }
            other => Err(ReadError::unsupported(format!(
                "a string column in {other}"
            ))),
        }
    }
}

fn outside(code: u32, len: usize) -> ReadError {
    ReadError::damaged(format!("code {code} in a dictionary of {len} values"))
}

fn codes(bytes: &Bytes, values: usize) -> Result<Vec<u32>, ReadError> {
    let mut codes = vec![0; values];
    if values > 0 {
        let (width, runs) = code_width(bytes)?;
        HybridDecoder::new(runs, width)?.read(&mut codes)?;
    }
    Ok(codes)
}

/// Checks that a page of differences of so many bytes can have so many values, before memory is
/// reserved for them, and returns their number.
fn at_most(values: usize, bytes: &[u8]) -> Result<usize, ReadError> {
    if values / MAX_VALUES_PER_BYTE > bytes.len() {
        let stored = bytes.len();
        return Err(ReadError::damaged(format!(
            "{values} values in {stored} bytes"
        )));
    }
    Ok(values)
}

/// How many values a byte of a page of differences can stand for. A miniblock whose differences are
/// all the same takes one byte, for its width, and has up to 65,536 values.
const MAX_VALUES_PER_BYTE: usize = 1 << 16;

/// Splits a page of PLAIN strings, each of which stands behind its length.
fn plain_texts(mut bytes: Bytes, values: usize) -> Result<Vec<Bytes>, ReadError> {
    // The header promises the number of values, but each takes four bytes for its length at least.
    let mut texts = Vec::with_capacity(values.min(bytes.len() / 4 + 1));
    for _ in 0..values {
        let len = bytes.first_chunk::<4>().copied().map(u32::from_le_bytes);
        let end = len.and_then(|len| (len as usize).checked_add(4));
        let end = end.filter(|end| *end <= bytes.len());
        let end = end.ok_or_else(|| ReadError::damaged("a string leaves its page"))?;
        texts.push(bytes.split_to(end).slice(4..));
    }
    Ok(texts)
}

/// Splits a page in DELTA_LENGTH_BYTE_ARRAY, which has the lengths of all strings and then their
/// bytes.
fn texts_behind_lengths(bytes: Bytes, values: usize) -> Result<Vec<Bytes>, ReadError> {
    let (lengths, mut bytes) = lengths(bytes, values)?;
    let texts = lengths.into_iter().map(|len| {
        if len > bytes.len() {
            return Err(ReadError::damaged("a string leaves its page"));
        }
        Ok(bytes.split_to(len))
    });
    texts.collect()
}

/// Decodes a page in DELTA_BYTE_ARRAY, which says for each string with how many bytes of the one
/// before it begins, and then has the rest of each.
fn texts_by_prefix(bytes: Bytes, values: usize) -> Result<Vec<Bytes>, ReadError> {
    let stored = bytes.len();
    let most = PREFIX_EXPANSION_MAX
        .saturating_mul(stored)
        .max(PREFIX_BYTES_ALLOWED);
    let (prefixes, bytes) = lengths(bytes, values)?;
    let suffixes = texts_behind_lengths(bytes, values)?;
    let mut last = Bytes::new();
    let mut copied = 0usize;
    let texts = prefixes.into_iter().zip(suffixes).map(|(len, suffix)| {
        if len > last.len() {
            return Err(ReadError::damaged("a prefix is longer than its string"));
        }
        // Only a string that has bytes of both needs memory of its own.
        last = if suffix.is_empty() {
            last.slice(..len)
        } else if len == 0 {
            suffix
        } else {
            copied += len + suffix.len();
            if copied > most {
                return Err(ReadError::damaged(format!(
                    "strings by prefix of more than {most} bytes in a page of {stored}"
                )));
            }
            Bytes::from([&last[..len], &suffix].concat())
        };
        Ok(last.clone())
    });
    texts.collect()
}

/// How many times the bytes of their page strings by prefix may take. A page in which each string
/// goes on where the one before ended stands for the square of its own size; real ones share some
/// hundreds of bytes with a neighbour at most.
const PREFIX_EXPANSION_MAX: usize = 1024;
/// What strings by prefix may take in any case, since a small page may well stand for this much.
const PREFIX_BYTES_ALLOWED: usize = 64 << 20;

/// Decodes lengths that are stored as differences, and returns what follows them in the page too.
fn lengths(bytes: Bytes, values: usize) -> Result<(Vec<usize>, Bytes), ReadError> {
    let mut stored = vec![0; at_most(values, &bytes)?];
    let mut decoder = DeltaDecoder::new(bytes)?;
    decoder.read(&mut stored)?;
    let lengths = stored.into_iter().map(|len| {
        usize::try_from(len).map_err(|_| ReadError::damaged(format!("a length of {len}")))
    });
    Ok((lengths.collect::<Result<_, _>>()?, decoder.rest()?))
}

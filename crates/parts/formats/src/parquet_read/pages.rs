//! Reads the pages of one column chunk: compares checksums, decompresses, and splits levels off.

use std::path::PathBuf;

use bytes::Bytes;

use super::ReadError;
use super::codings::Encoding;
use super::decompress::Decompressor;
use super::metadata::Chunk;
use super::source::Segment;
use super::thrift::{Field, Reader};

/// A decompressed page without its header and levels.
pub(super) enum PlainPage {
    Dictionary {
        bytes: Bytes,
        len: usize,
    },
    Data {
        bytes: Bytes,
        /// How many rows it has, those without a value included.
        rows: usize,
        encoding: Encoding,
        /// For each row whether it has a value, as runs of one bit. `None` if all rows have one.
        present: Option<Bytes>,
    },
}

/// Reads the pages of one column chunk in order.
pub(super) struct Pages {
    segment: Segment,
    /// Where the next header begins, and where the chunk ends.
    at: u64,
    end: u64,
    decompressor: Decompressor,
    /// Whether rows can be without a value, because the column has one level of definition.
    optional: bool,
    /// Whether the chunk's dictionary has been read.
    has_dictionary: bool,
    path: PathBuf,
}

/// The most rows of a page that is read. Most writers make some thousands, but some make one page
/// of a row group whose values are all the same. A header that promises more only costs memory.
const ROWS_MAX: usize = 1 << 26;

/// Kinds of pages by their numbers in the format (parquet.thrift, PageType).
const DATA_PAGE: i32 = 0;
const INDEX_PAGE: i32 = 1;
const DICTIONARY_PAGE: i32 = 2;
const DATA_PAGE_V2: i32 = 3;

/// A page's header (parquet.thrift, PageHeader), with the fields that the different kinds of pages
/// have. All numbers are as the file states them.
#[derive(Debug, Default)]
struct Header {
    kind: i32,
    raw_bytes: usize,
    stored_bytes: usize,
    crc: Option<u32>,
    values: usize,
    encoding: i32,
    /// The encoding of definition levels, in version 1.
    levels_encoding: i32,
    nulls: usize,
    /// Bytes of definition levels in front of the values, in version 2.
    definition_bytes: usize,
    repetition_bytes: usize,
    is_compressed: bool,
    /// Bytes of the header itself, at least one.
    bytes: u64,
}

impl Pages {
    pub(super) fn new(
        segment: Segment,
        chunk: &Chunk,
        (start, bytes): (u64, u64),
        optional: bool,
        path: PathBuf,
    ) -> Result<Self, ReadError> {
        let end = start
            .checked_add(bytes)
            .ok_or_else(|| ReadError::damaged("a column chunk leaves its file"))?;
        Ok(Self {
            segment,
            at: start,
            end,
            decompressor: Decompressor::new(chunk.codec)?,
            optional,
            has_dictionary: false,
            path,
        })
    }

    /// Skips whole data pages that have at most `rows` rows together, and returns how many rows
    /// they had.
    pub(super) fn skip(&mut self, rows: usize) -> Result<usize, ReadError> {
        let mut skipped = 0;
        while let Some(header) = self.header()? {
            let is_data = matches!(header.kind, DATA_PAGE | DATA_PAGE_V2);
            if !is_data || header.values > rows - skipped {
                break;
            }
            // The page may reach behind the chunk. Then the next header is behind the end too, and
            // the caller finds that rows are missing.
            self.at += header.bytes + header.stored_bytes as u64;
            // A flat column has one value or NULL for each row.
            skipped += header.values;
        }
        Ok(skipped)
    }

    /// Reads the next page. `None` behind the last one.
    pub(super) fn next(&mut self) -> Result<Option<PlainPage>, ReadError> {
        loop {
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            let begin = self.at + header.bytes;
            let stored = self.bytes(begin, header.stored_bytes as u64)?;
            self.at = begin + header.stored_bytes as u64;
            // Before the page is decompressed, because the checksum is of the stored bytes. Many
            // writers leave it out.
            if let Some(crc) = header.crc
                && crc32fast::hash(&stored) != crc
            {
                return Err(self.broken(format!("the page at {begin}: CRC checksum mismatch")));
            }
            match header.kind {
                INDEX_PAGE => {}
                DICTIONARY_PAGE => return self.dictionary(&header, stored).map(Some),
                DATA_PAGE => return self.data(&header, stored).map(Some),
                DATA_PAGE_V2 => return self.data_v2(&header, stored).map(Some),
                other => return Err(self.broken(format!("a page of kind {other}"))),
            }
        }
    }

    fn dictionary(&mut self, header: &Header, stored: Bytes) -> Result<PlainPage, ReadError> {
        // The format has one dictionary in a chunk. Readers keep what they computed for its codes,
        // so a second one would give those codes another meaning behind their backs.
        if std::mem::replace(&mut self.has_dictionary, true) {
            return Err(ReadError::damaged("second dictionary in a column chunk"));
        }
        let encoding = Encoding(header.encoding);
        if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
            return Err(ReadError::unsupported(format!("a {encoding} dictionary")));
        }
        Ok(PlainPage::Dictionary {
            bytes: self.decompressor.decompress(stored, header.raw_bytes)?,
            len: header.values,
        })
    }

    /// Splits a data page of version 1, in which levels and values are compressed together.
    fn data(&mut self, header: &Header, stored: Bytes) -> Result<PlainPage, ReadError> {
        let mut bytes = self.decompressor.decompress(stored, header.raw_bytes)?;
        let mut present = None;
        if self.optional {
            let coded = Encoding(header.levels_encoding);
            if coded != Encoding::RLE {
                return Err(ReadError::unsupported(format!("levels in {coded}")));
            }
            let len = bytes.first_chunk::<4>().copied().map(u32::from_le_bytes);
            let end = len.and_then(|len| (len as usize).checked_add(4));
            let end = end.filter(|end| *end <= bytes.len());
            let end = end.ok_or_else(|| ReadError::damaged("levels leave their page"))?;
            let levels = bytes.split_to(end);
            present = Some(levels.slice(4..));
        }
        Ok(PlainPage::Data {
            bytes,
            rows: header.values,
            encoding: Encoding(header.encoding),
            present,
        })
    }

    /// Splits a data page of version 2, in which levels come first and are never compressed.
    fn data_v2(&mut self, header: &Header, mut stored: Bytes) -> Result<PlainPage, ReadError> {
        let levels = header
            .definition_bytes
            .saturating_add(header.repetition_bytes);
        if levels > stored.len() || levels > header.raw_bytes {
            return Err(ReadError::damaged(format!(
                "{levels} bytes of levels in a page of {}",
                stored.len()
            )));
        }
        if header.nulls > 0 && !self.optional {
            return Err(ReadError::damaged(format!(
                "page of a required column with {} nulls, {levels} level bytes",
                header.nulls
            )));
        }
        // Repetition levels come before definition levels. A flat column should have none.
        let first = stored.split_to(levels);
        let present = (header.nulls > 0).then(|| first.slice(header.repetition_bytes..));
        let raw_bytes = header.raw_bytes - levels;
        // A page in which every row is NULL has nothing to decompress.
        let bytes = if header.is_compressed && !stored.is_empty() {
            self.decompressor.decompress(stored, raw_bytes)?
        } else {
            stored
        };
        Ok(PlainPage::Data {
            bytes,
            rows: header.values,
            encoding: Encoding(header.encoding),
            present,
        })
    }

    /// Reads the header at the current position. `None` behind the last page.
    fn header(&self) -> Result<Option<Header>, ReadError> {
        if self.at >= self.end {
            return Ok(None);
        }
        let bytes = self.bytes_from(self.at)?;
        let mut reader = Reader::new(bytes);
        let mut header = Header {
            is_compressed: true,
            ..Header::default()
        };
        let read = reader.structure(|reader, field| header.read_field(reader, field));
        read.map_err(|error| self.broken(error.to_string()))?;
        if header.values > ROWS_MAX {
            return Err(self.broken(format!("a page of {} values", header.values)));
        }
        header.bytes = reader.position() as u64;
        Ok(Some(header))
    }

    fn bytes(&self, start: u64, len: u64) -> Result<Bytes, ReadError> {
        let inside = start.checked_add(len).is_some_and(|end| end <= self.end);
        self.segment
            .bytes(start, len)
            .filter(|_| inside)
            .ok_or_else(|| self.broken(format!("{len} bytes at {start} leave their chunk")))
    }

    fn bytes_from(&self, start: u64) -> Result<&[u8], ReadError> {
        self.segment
            .rest(start)
            .ok_or_else(|| self.broken(format!("byte {start} lies outside of its chunk")))
    }

    fn broken(&self, reason: String) -> ReadError {
        ReadError::File {
            path: self.path.clone(),
            reason,
        }
    }
}

impl Header {
    /// Reads a field of PageHeader, or skips it.
    fn read_field(&mut self, reader: &mut Reader<'_>, field: Field) -> Result<(), ReadError> {
        match field.id {
            1 => self.kind = reader.i32(field)?,
            2 => self.raw_bytes = reader.size(field)?,
            3 => self.stored_bytes = reader.size(field)?,
            4 => self.crc = Some(reader.i32(field)? as u32),
            5 => reader.inner(field, |reader, field| self.data(reader, field))?,
            7 => reader.inner(field, |reader, field| self.data(reader, field))?,
            8 => reader.inner(field, |reader, field| self.data_v2(reader, field))?,
            _ => reader.skip(field)?,
        }
        Ok(())
    }

    /// Reads a field of DataPageHeader, or of DictionaryPageHeader, which begins like it.
    fn data(&mut self, reader: &mut Reader<'_>, field: Field) -> Result<(), ReadError> {
        match (field.id, self.kind) {
            (1, _) => self.values = reader.size(field)?,
            (2, _) => self.encoding = reader.i32(field)?,
            (3, DATA_PAGE) => self.levels_encoding = reader.i32(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    }

    /// Reads a field of DataPageHeaderV2, or skips it.
    fn data_v2(&mut self, reader: &mut Reader<'_>, field: Field) -> Result<(), ReadError> {
        match field.id {
            1 => self.values = reader.size(field)?,
            2 => self.nulls = reader.size(field)?,
            4 => self.encoding = reader.i32(field)?,
            5 => self.definition_bytes = reader.size(field)?,
            6 => self.repetition_bytes = reader.size(field)?,
            7 => self.is_compressed = reader.boolean(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    }
}

/// Splits a page of codes into their width in bits and the runs behind it.
pub(super) fn code_width(bytes: &Bytes) -> Result<(u8, Bytes), ReadError> {
    match bytes.first() {
        Some(width) => Ok((*width, bytes.slice(1..))),
        None => Err(ReadError::damaged("page of codes without their width")),
    }
}

//! Encodes one column of a row group into pages, in an encoding that the caller chooses.

use std::ops::Range;

use super::chunk::PageEntry;
use super::compress::Compressor;
use super::error::Result;
use super::extent::Extent;
use super::footer::{ChunkMeta, Statistics};
use super::options::{Compression, PageVersion};
use super::page::{Page, encoding};
use super::text::Text;
use super::{delta, hybrid};

/// The most rows of a data page. They are few enough that a reader that wants some hours of a month
/// can skip most of it by the page index.
pub const PAGE_ROWS: usize = 32 * 1024;
/// The most rows of a page of differences. Such a page is read from its beginning whichever of its
/// rows are wanted, and the smaller pages are, the more of them lie within one day.
pub const DELTA_PAGE_ROWS: usize = 8192;
/// The most rows of a page of text without a dictionary.
pub const TEXT_PAGE_ROWS: usize = 4096;

/// Smallest and largest value of a column chunk in PLAIN form without a length prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// A bound than which no value is smaller.
    pub min: Vec<u8>,
    /// A bound than which no value is larger.
    pub max: Vec<u8>,
    /// Whether both are values of the chunk, not merely bounds.
    pub exact: bool,
}

/// A dictionary page: its values in PLAIN encoding.
#[derive(Debug, Clone, Copy)]
pub struct Dictionary<'a> {
    /// PLAIN-encoded values (BYTE_ARRAY with its 4-byte length prefixes).
    pub plain: &'a [u8],
    /// The number of values in `plain`.
    pub values: usize,
}

/// One column chunk, ready to be written.
#[derive(Default)]
pub struct Column {
    /// Page headers and bodies in file order.
    pub(super) bytes: Vec<u8>,
    /// What the footer says of the chunk, except for its location and length.
    pub(super) meta: ChunkMeta,
    /// What the page index says of each data page.
    pub(super) pages: Vec<PageEntry>,
    page: Vec<u8>,
    /// For each row of a nullable column 1 if it has a value, else 0.
    levels: Vec<u32>,
    nullable: bool,
    compressor: Compressor,
}

impl Column {
    /// Says which rows have a value, for the encoding that follows, which is given the values of
    /// those rows only. It must be called each time for columns of nullable fields, and never for
    /// others.
    pub fn present(&mut self, rows: impl IntoIterator<Item = bool>) {
        self.nullable = true;
        self.levels.clear();
        self.levels.extend(rows.into_iter().map(u32::from));
    }

    pub(super) fn nullable(&self) -> bool {
        self.nullable
    }

    /// Forgets the pages of the row group before and keeps the memory.
    ///
    /// # Panics
    /// When there are not as many values as rows that have one, a bug of the caller.
    fn restart(&mut self, values: usize, encodings: &[i32], bounds: Option<Bounds>) {
        self.bytes.clear();
        self.pages.clear();
        let rows = if self.nullable {
            let present: u32 = self.levels.iter().sum();
            assert_eq!(
                values, present as usize,
                "a value for each row that has one"
            );
            self.levels.len()
        } else {
            values
        };
        self.meta = ChunkMeta {
            values: rows,
            encodings: encodings.to_vec(),
            statistics: bounds.map(|bounds| Statistics {
                nulls: rows - values,
                min: bounds.min,
                max: bounds.max,
                min_exact: bounds.exact,
                max_exact: bounds.exact,
                distinct: None,
            }),
            ..ChunkMeta::default()
        };
    }

    /// Encodes `codes` of `dictionary`. Each code must be below the number of its values.
    pub fn dictionary(
        &mut self,
        dictionary: Dictionary<'_>,
        codes: &[u32],
        bounds: Option<Bounds>,
    ) {
        let used = [encoding::PLAIN, encoding::RLE, encoding::RLE_DICTIONARY];
        self.restart(codes.len(), &used, bounds);
        let page = Page::Dictionary {
            entries: dictionary.values,
        };
        self.page(page, dictionary.plain, dictionary.plain.len());
        self.meta.dictionary_bytes = self.bytes.len();
        let width = hybrid::bits_for(dictionary.values);
        self.plain_pages(
            encoding::RLE_DICTIONARY,
            PAGE_ROWS,
            unbounded,
            |part, page| {
                page.push(width as u8);
                hybrid::encode(&codes[part], width, page);
            },
        );
    }

    /// Encodes 64-bit integers by their differences: right for ids and times.
    pub fn delta(&mut self, values: &[i64], bounds: Option<Bounds>) {
        let used = [encoding::RLE, encoding::DELTA_BINARY_PACKED];
        self.restart(values.len(), &used, bounds);
        let extent = |part: Range<usize>| {
            let extent = Extent::from_i64(&values[part]);
            // Of numbers below zero it depends on the field, which may be unsigned, which is
            // smaller. So such pages say nothing of their ends.
            extent.filter(|extent| matches!(extent, Extent::Int64 { min: 0.., .. }))
        };
        let encoding = encoding::DELTA_BINARY_PACKED;
        self.plain_pages(encoding, DELTA_PAGE_ROWS, extent, |part, page| {
            delta::encode(&values[part], page);
        });
    }

    /// Stores 64-bit integers as they are.
    pub fn plain_i64(&mut self, values: &[i64], bounds: Option<Bounds>) {
        self.restart(values.len(), &[encoding::RLE, encoding::PLAIN], bounds);
        self.plain_pages(encoding::PLAIN, PAGE_ROWS, unbounded, |part, page| {
            page.extend(values[part].iter().flat_map(|value| value.to_le_bytes()));
        });
    }

    /// Stores 32-bit integers as they are.
    pub fn plain_i32(&mut self, values: &[i32], bounds: Option<Bounds>) {
        self.restart(values.len(), &[encoding::RLE, encoding::PLAIN], bounds);
        self.plain_pages(encoding::PLAIN, PAGE_ROWS, unbounded, |part, page| {
            page.extend(values[part].iter().flat_map(|value| value.to_le_bytes()));
        });
    }

    /// Stores text as it is, in pages of [`TEXT_PAGE_ROWS`] rows. `offsets` says where each value
    /// begins in `bytes` and where the last one ends.
    ///
    /// # Errors
    /// When a page cannot be compressed.
    pub fn plain_text(
        &mut self,
        offsets: &[u32],
        bytes: &[u8],
        codec: Compression,
        bounds: Option<Bounds>,
    ) -> Result<()> {
        let text = Text { offsets, bytes };
        self.restart(text.len(), &[encoding::RLE, encoding::PLAIN], bounds);
        self.meta.codec = codec.codec();
        let mut compressor = std::mem::take(&mut self.compressor);
        let done = self.cut_pages(TEXT_PAGE_ROWS, |column, rows, part, body| {
            text.rows(part).plain(body);
            let stored = compressor.compress(codec, body)?;
            column.data_page(encoding::PLAIN, (rows, None), stored, body.len());
            Ok(())
        });
        self.compressor = compressor;
        done
    }

    /// Writes pages of `page_rows` rows without a codec. `fill` appends the values of a range to a
    /// page, and `extent` computes their bounds, which pages of nullable columns do not have.
    fn plain_pages(
        &mut self,
        encoding: i32,
        page_rows: usize,
        extent: impl Fn(Range<usize>) -> Option<Extent>,
        fill: impl Fn(Range<usize>, &mut Vec<u8>),
    ) {
        let done = self.cut_pages(page_rows, |column, rows, part, body| {
            fill(part.clone(), body);
            let extent = (!column.nullable).then(|| extent(part)).flatten();
            column.data_page(encoding, (rows, extent), body, body.len());
            Ok(())
        });
        debug_assert!(done.is_ok(), "only codecs fail");
    }

    /// Calls `write` for each page with the number of its rows, the range of its values, and a body
    /// that begins with its levels if the column has any.
    fn cut_pages(
        &mut self,
        page_rows: usize,
        mut write: impl FnMut(&mut Column, usize, Range<usize>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        // Buffers are moved out of the column while `write` borrows it, and are put back even after
        // an error.
        let mut body = std::mem::take(&mut self.page);
        let levels = std::mem::take(&mut self.levels);
        let mut done = Ok(());
        let mut value = 0;
        for start in (0..self.meta.values).step_by(page_rows) {
            let rows = page_rows.min(self.meta.values - start);
            let mut present = rows;
            body.clear();
            if self.nullable {
                let levels = &levels[start..start + rows];
                present = levels.iter().sum::<u32>() as usize;
                push_levels(levels, &mut body);
            }
            done = write(self, rows, value..value + present, &mut body);
            value += present;
            if done.is_err() {
                break;
            }
        }
        (self.page, self.levels) = (body, levels);
        done
    }

    fn data_page(
        &mut self,
        encoding: i32,
        (rows, extent): (usize, Option<Extent>),
        stored: &[u8],
        raw_bytes: usize,
    ) {
        let start = self.bytes.len();
        let page = Page::Data {
            version: PageVersion::V1,
            rows,
            encoding,
            is_compressed: false,
        };
        self.page(page, stored, raw_bytes);
        self.pages.push(PageEntry {
            bytes: self.bytes.len() - start,
            rows,
            extent,
            kind: page.kind(),
            encoding,
        });
    }

    fn page(&mut self, page: Page, stored: &[u8], raw_bytes: usize) {
        let header_bytes = page.write(raw_bytes, stored, &mut self.bytes);
        self.meta.raw_bytes += header_bytes + raw_bytes;
    }
}

/// The bounds of pages for which none are wanted.
fn unbounded(_: Range<usize>) -> Option<Extent> {
    None
}

/// Appends the definition levels of a page of version 1, which are their length and then runs of
/// one bit.
fn push_levels(levels: &[u32], body: &mut Vec<u8>) {
    let start = body.len();
    body.extend_from_slice(&[0; 4]);
    hybrid::encode(levels, 1, body);
    let length = (body.len() - start - 4) as u32;
    body[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

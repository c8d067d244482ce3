//! One column of one row group, encoded and framed as pages.

use super::footer::{ChunkMeta, Statistics};
use super::options::PageVersion;
use super::page::{Page, encoding};
use super::{delta, hybrid};

/// Rows of one data page at most.
pub const PAGE_ROWS: usize = 128 * 1024;

/// Smallest and largest value of a column chunk in PLAIN form without a length prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// No value is smaller.
    pub min: Vec<u8>,
    /// No value is larger.
    pub max: Vec<u8>,
    /// Whether both are values of the chunk, not merely bounds.
    pub exact: bool,
}

/// A dictionary page: its values in PLAIN encoding.
#[derive(Debug, Clone, Copy)]
pub struct Dictionary<'a> {
    /// PLAIN-encoded values (BYTE_ARRAY with its 4-byte length prefixes).
    pub plain: &'a [u8],
    /// How many they are.
    pub values: usize,
}

/// One column chunk, ready to be written.
#[derive(Debug, Default)]
pub struct Column {
    /// Page headers and bodies in file order.
    pub(super) bytes: Vec<u8>,
    /// All of what the footer says but the bytes.
    pub(super) meta: ChunkMeta,
    page: Vec<u8>,
}

impl Column {
    /// Forgets what it holds and keeps its memory.
    fn restart(&mut self, values: usize, encodings: &[i32], bounds: Option<Bounds>) {
        self.bytes.clear();
        self.meta = ChunkMeta {
            values,
            encodings: encodings.to_vec(),
            statistics: bounds.map(|bounds| Statistics {
                min: bounds.min,
                max: bounds.max,
                min_exact: bounds.exact,
                max_exact: bounds.exact,
                distinct: None,
            }),
            ..ChunkMeta::default()
        };
    }

    /// Encodes `codes` into `dictionary`; each code must be below the number of its values.
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
        page.write(dictionary.plain.len(), dictionary.plain, &mut self.bytes);
        self.meta.dictionary_bytes = self.bytes.len();
        let width = hybrid::bits_for(dictionary.values);
        for part in codes.chunks(PAGE_ROWS) {
            self.data_page(encoding::RLE_DICTIONARY, part.len(), |page| {
                page.push(width as u8);
                hybrid::encode(part, width, page);
            });
        }
    }

    /// Encodes 64-bit integers by their differences: right for ids and times.
    pub fn delta(&mut self, values: &[i64], bounds: Option<Bounds>) {
        self.restart(
            values.len(),
            &[encoding::RLE, encoding::DELTA_BINARY_PACKED],
            bounds,
        );
        for part in values.chunks(PAGE_ROWS) {
            self.data_page(encoding::DELTA_BINARY_PACKED, part.len(), |page| {
                delta::encode(part, page)
            });
        }
    }

    /// Stores 64-bit integers as they are.
    pub fn plain_i64(&mut self, values: &[i64], bounds: Option<Bounds>) {
        self.restart(values.len(), &[encoding::RLE, encoding::PLAIN], bounds);
        for part in values.chunks(PAGE_ROWS) {
            self.data_page(encoding::PLAIN, part.len(), |page| {
                page.extend(part.iter().flat_map(|value| value.to_le_bytes()));
            });
        }
    }

    /// Stores 32-bit integers as they are.
    pub fn plain_i32(&mut self, values: &[i32], bounds: Option<Bounds>) {
        self.restart(values.len(), &[encoding::RLE, encoding::PLAIN], bounds);
        for part in values.chunks(PAGE_ROWS) {
            self.data_page(encoding::PLAIN, part.len(), |page| {
                page.extend(part.iter().flat_map(|value| value.to_le_bytes()));
            });
        }
    }

    fn data_page(&mut self, encoding: i32, rows: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut body = std::mem::take(&mut self.page);
        body.clear();
        fill(&mut body);
        let page = Page::Data {
            version: PageVersion::V1,
            rows,
            encoding,
            is_compressed: false,
        };
        page.write(body.len(), &body, &mut self.bytes);
        self.page = body;
    }
}

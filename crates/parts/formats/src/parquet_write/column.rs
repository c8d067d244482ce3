//! One column of one row group, encoded and framed as pages.

use super::thrift::Struct;
use super::{delta, hybrid};

/// Rows of one data page at most.
pub const PAGE_ROWS: usize = 128 * 1024;

const PLAIN: i32 = 0;
const RLE: i32 = 3;
const DELTA_BINARY_PACKED: i32 = 5;
const RLE_DICTIONARY: i32 = 8;
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

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
    /// Length of the dictionary page, header included; 0 without one.
    pub(super) dictionary_bytes: usize,
    pub(super) values: usize,
    pub(super) encodings: Vec<i32>,
    pub(super) bounds: Option<Bounds>,
    page: Vec<u8>,
}

impl Column {
    /// Forgets what it holds and keeps its memory.
    fn restart(&mut self, values: usize, encodings: &[i32], bounds: Option<Bounds>) {
        self.bytes.clear();
        self.dictionary_bytes = 0;
        self.values = values;
        self.encodings.clear();
        self.encodings.extend_from_slice(encodings);
        self.bounds = bounds;
    }

    /// Encodes `codes` into `dictionary`; each code must be below the number of its values.
    pub fn dictionary(
        &mut self,
        dictionary: Dictionary<'_>,
        codes: &[u32],
        bounds: Option<Bounds>,
    ) {
        self.restart(codes.len(), &[PLAIN, RLE, RLE_DICTIONARY], bounds);
        self.frame(DICTIONARY_PAGE, dictionary.plain, |header| {
            header.structure(7, |page| {
                page.i32(1, dictionary.values as i32);
                page.i32(2, PLAIN);
            });
        });
        self.dictionary_bytes = self.bytes.len();
        let width = hybrid::bits_for(dictionary.values);
        for part in codes.chunks(PAGE_ROWS) {
            self.data_page(RLE_DICTIONARY, part.len(), |page| {
                page.push(width as u8);
                hybrid::encode(part, width, page);
            });
        }
    }

    /// Encodes 64-bit integers by their differences: right for ids and times.
    pub fn delta(&mut self, values: &[i64], bounds: Option<Bounds>) {
        self.restart(values.len(), &[RLE, DELTA_BINARY_PACKED], bounds);
        for part in values.chunks(PAGE_ROWS) {
            self.data_page(DELTA_BINARY_PACKED, part.len(), |page| {
                delta::encode(part, page)
            });
        }
    }

    /// Stores 64-bit integers as they are.
    pub fn plain_i64(&mut self, values: &[i64], bounds: Option<Bounds>) {
        self.restart(values.len(), &[RLE, PLAIN], bounds);
        for part in values.chunks(PAGE_ROWS) {
            self.data_page(PLAIN, part.len(), |page| {
                page.extend(part.iter().flat_map(|value| value.to_le_bytes()));
            });
        }
    }

    /// Stores 32-bit integers as they are.
    pub fn plain_i32(&mut self, values: &[i32], bounds: Option<Bounds>) {
        self.restart(values.len(), &[RLE, PLAIN], bounds);
        for part in values.chunks(PAGE_ROWS) {
            self.data_page(PLAIN, part.len(), |page| {
                page.extend(part.iter().flat_map(|value| value.to_le_bytes()));
            });
        }
    }

    fn data_page(&mut self, encoding: i32, values: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        fill(&mut page);
        self.frame(DATA_PAGE, &page, |header| {
            header.structure(5, |data| {
                data.i32(1, values as i32);
                data.i32(2, encoding);
                data.i32(3, RLE);
                data.i32(4, RLE);
            });
        });
        self.page = page;
    }

    fn frame(&mut self, kind: i32, body: &[u8], describe: impl FnOnce(&mut Struct<'_>)) {
        Struct::write(&mut self.bytes, |header| {
            header.i32(1, kind);
            header.i32(2, body.len() as i32);
            header.i32(3, body.len() as i32);
            header.i32(4, crc32fast::hash(body) as i32);
            describe(header);
        });
        self.bytes.extend_from_slice(body);
    }
}

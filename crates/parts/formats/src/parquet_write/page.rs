//! Pages: a header in front of what a column's values became.

use super::options::PageVersion;
use super::thrift::Struct;

/// Numbers of the format for encodings (parquet.thrift, Encoding).
pub(super) mod encoding {
    pub const PLAIN: i32 = 0;
    pub const RLE: i32 = 3;
    pub const DELTA_BINARY_PACKED: i32 = 5;
    pub const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
    pub const DELTA_BYTE_ARRAY: i32 = 7;
    pub const RLE_DICTIONARY: i32 = 8;
}

/// Numbers of the format for pages (parquet.thrift, PageType).
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const DATA_PAGE_V2: i32 = 3;

/// What is in a page.
#[derive(Debug, Clone, Copy)]
pub(super) enum Page {
    /// So many values in PLAIN encoding.
    Dictionary { entries: usize },
    /// So many values, which are as many rows: all columns are required.
    Data {
        version: PageVersion,
        rows: usize,
        encoding: i32,
        /// Whether the codec of the chunk was used, which only version 2 can say of a page.
        is_compressed: bool,
    },
}

impl Page {
    /// The number of the format for the kind of page.
    pub fn kind(self) -> i32 {
        match self {
            Page::Dictionary { .. } => DICTIONARY_PAGE,
            Page::Data {
                version: PageVersion::V1,
                ..
            } => DATA_PAGE,
            Page::Data { .. } => DATA_PAGE_V2,
        }
    }

    /// Appends the page and says how many bytes its header has. `raw_bytes` is the size before the
    /// codec.
    pub fn write(self, raw_bytes: usize, stored: &[u8], out: &mut Vec<u8>) -> usize {
        let start = out.len();
        Struct::write(out, |header| {
            header.i32(1, self.kind());
            header.i32(2, raw_bytes as i32);
            header.i32(3, stored.len() as i32);
            header.i32(4, crc32fast::hash(stored) as i32);
            self.describe(header);
        });
        let header_bytes = out.len() - start;
        out.extend_from_slice(stored);
        header_bytes
    }

    fn describe(self, header: &mut Struct<'_>) {
        match self {
            Page::Dictionary { entries } => header.structure(7, |page| {
                page.i32(1, entries as i32);
                page.i32(2, encoding::PLAIN);
            }),
            Page::Data {
                version: PageVersion::V1,
                rows,
                encoding,
                ..
            } => header.structure(5, |page| {
                page.i32(1, rows as i32);
                page.i32(2, encoding);
                page.i32(3, encoding::RLE);
                page.i32(4, encoding::RLE);
            }),
            Page::Data {
                version: PageVersion::V2,
                rows,
                encoding,
                is_compressed,
            } => header.structure(8, |page| {
                page.i32(1, rows as i32);
                page.i32(2, 0);
                page.i32(3, rows as i32);
                page.i32(4, encoding);
                page.i32(5, 0);
                page.i32(6, 0);
                page.bool(7, is_compressed);
            }),
        }
    }
}

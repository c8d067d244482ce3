//! Writes pages, which are a header in front of the encoded values.

use super::options::PageVersion;
use super::thrift::Struct;

/// Encodings by their numbers in the format (parquet.thrift, Encoding).
pub(super) mod encoding {
    pub const PLAIN: i32 = 0;
    pub const RLE: i32 = 3;
    pub const DELTA_BINARY_PACKED: i32 = 5;
    pub const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
    pub const DELTA_BYTE_ARRAY: i32 = 7;
    pub const RLE_DICTIONARY: i32 = 8;
}

/// Kinds of pages by their numbers in the format (parquet.thrift, PageType).
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const DATA_PAGE_V2: i32 = 3;

/// What a page's header says of its content.
#[derive(Debug, Clone, Copy)]
pub(super) enum Page {
    /// A dictionary of so many values in PLAIN encoding.
    Dictionary { entries: usize },
    /// A page of `rows` rows, some of which may have no value.
    Data {
        version: PageVersion,
        rows: usize,
        encoding: i32,
        /// Whether the codec of the chunk was used. Only version 2 can say so of a single page.
        is_compressed: bool,
    },
}

impl Page {
    /// The kind of page by its number in the format.
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

    /// Appends the page and returns how many bytes its header has. `raw_bytes` is the size before
    /// compression. The caller has checked that both sizes fit into 31 bits.
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

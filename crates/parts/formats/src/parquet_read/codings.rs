//! Codecs of pages and encodings of values, by the numbers of the format.

use std::fmt;

/// How pages are compressed (parquet.thrift, CompressionCodec).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Pages are stored as they are.
    Uncompressed,
    /// Snappy blocks without its framing format.
    Snappy,
    /// LZ4, in one of the three framings that writers have understood by this number.
    Lz4,
    /// Zstandard frames, of any level.
    Zstd,
    /// LZ4 blocks without any framing.
    Lz4Raw,
    /// Another codec, by its number, which is not read here.
    Other(i32),
}

/// How values are coded (parquet.thrift, Encoding).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding(pub(super) i32);

impl Encoding {
    pub(super) const PLAIN: Encoding = Encoding(0);
    pub(super) const PLAIN_DICTIONARY: Encoding = Encoding(2);
    pub(super) const RLE: Encoding = Encoding(3);
    pub(super) const DELTA_BINARY_PACKED: Encoding = Encoding(5);
    pub(super) const DELTA_LENGTH_BYTE_ARRAY: Encoding = Encoding(6);
    pub(super) const DELTA_BYTE_ARRAY: Encoding = Encoding(7);
    pub(super) const RLE_DICTIONARY: Encoding = Encoding(8);
    pub(super) const BYTE_STREAM_SPLIT: Encoding = Encoding(9);

    pub(super) fn is_dictionary(self) -> bool {
        self == Encoding::PLAIN_DICTIONARY || self == Encoding::RLE_DICTIONARY
    }
}

/// A set of encodings, one bit for each number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Encodings(u64);

impl Encodings {
    /// Adds an encoding. Numbers that the format does not have yet all count as one, which no
    /// allowed list contains, so that a column with any of them counts as not readable.
    pub(super) fn add(&mut self, encoding: i64) {
        self.0 |= 1 << encoding.clamp(0, 63);
    }

    pub(super) fn has(self, encoding: Encoding) -> bool {
        self.0 & (1 << encoding.0.clamp(0, 63)) != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set has no other encodings than these.
    pub(super) fn are_only(self, allowed: &[Encoding]) -> bool {
        let mut others = self;
        for encoding in allowed {
            others.0 &= !(1 << encoding.0.clamp(0, 63));
        }
        others.is_empty()
    }
}

impl Codec {
    pub(super) fn from_number(number: i32) -> Codec {
        match number {
            0 => Codec::Uncompressed,
            1 => Codec::Snappy,
            5 => Codec::Lz4,
            6 => Codec::Zstd,
            7 => Codec::Lz4Raw,
            other => Codec::Other(other),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Codec::Uncompressed => f.write_str("UNCOMPRESSED"),
            Codec::Snappy => f.write_str("SNAPPY"),
            Codec::Lz4 => f.write_str("LZ4"),
            Codec::Zstd => f.write_str("ZSTD"),
            Codec::Lz4Raw => f.write_str("LZ4_RAW"),
            Codec::Other(2) => f.write_str("GZIP"),
            Codec::Other(3) => f.write_str("LZO"),
            Codec::Other(4) => f.write_str("BROTLI"),
            Codec::Other(number) => write!(f, "codec {number}"),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Encoding::PLAIN => "PLAIN",
            Encoding::PLAIN_DICTIONARY => "PLAIN_DICTIONARY",
            Encoding::RLE => "RLE",
            Encoding(4) => "BIT_PACKED",
            Encoding::DELTA_BINARY_PACKED => "DELTA_BINARY_PACKED",
            Encoding::DELTA_LENGTH_BYTE_ARRAY => "DELTA_LENGTH_BYTE_ARRAY",
            Encoding::DELTA_BYTE_ARRAY => "DELTA_BYTE_ARRAY",
            Encoding::RLE_DICTIONARY => "RLE_DICTIONARY",
            Encoding::BYTE_STREAM_SPLIT => "BYTE_STREAM_SPLIT",
            Encoding(number) => return write!(f, "encoding {number}"),
        })
    }
}

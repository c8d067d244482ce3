//! The options of an ORC file, and how they are checked and parsed.

use std::fmt;
use std::str::FromStr;

use super::error::{Error, Result};

/// How a file is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The codec for the chunks of streams. [`Compression::None`] unless set.
    pub compression: Compression,
    /// The most bytes of a chunk before it is compressed, from 1 KiB to 4 MiB. 256 KiB unless set.
    pub chunk_bytes: usize,
    /// How many rows one entry of a row index stands for, at least 1000. 10000 unless set.
    pub stride_rows: usize,
    /// Look for repeated values in text that comes without codes, and write a dictionary for a
    /// stripe when it has at most four distinct values for each five rows. True unless set.
    pub find_dictionaries: bool,
    /// Fill values of `char(n)` with blanks up to n. False unless set.
    pub pad_chars: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            compression: Compression::None,
            chunk_bytes: 256 * 1024,
            stride_rows: 10_000,
            find_dictionaries: true,
            pad_chars: false,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |name, value: String, reason| {
            Err(Error::Option {
                name,
                value,
                reason,
            })
        };
        if !(1 << 10..=1 << 22).contains(&self.chunk_bytes) {
            let reason = "a chunk has 1 KiB to 4 MiB";
            return wrong("chunk_bytes", self.chunk_bytes.to_string(), reason);
        }
        if !(1000..=1 << 30).contains(&self.stride_rows) {
            let reason = "an index entry stands for 1000 to 2^30 rows";
            return wrong("stride_rows", self.stride_rows.to_string(), reason);
        }
        self.compression.check()
    }
}

/// How chunks of streams are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all: streams have no chunks.
    None,
    /// Deflate without the header of zlib, level 0 to 9.
    Zlib(u32),
    /// Snappy blocks without its framing format.
    Snappy,
    /// LZ4 blocks without its frame format.
    Lz4,
    /// Zstandard frames, level 1 to 22.
    Zstd(i32),
}

impl Compression {
    fn check(self) -> Result<()> {
        let reason = match self {
            Compression::Zlib(level) if level > 9 => "the levels of zlib are 0 to 9",
            Compression::Zstd(level) if !(1..=22).contains(&level) => {
                "the levels of zstd are 1 to 22"
            }
            _ => return Ok(()),
        };
        Err(Error::Option {
            name: "compression",
            value: self.to_string(),
            reason,
        })
    }

    /// The name that [`Compression::from_str`] reads, without a level.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Zlib(_) => "zlib",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd(_) => "zstd",
        }
    }

    /// The number of `CompressionKind` in the postscript.
    pub(super) fn kind(self) -> u64 {
        match self {
            Compression::None => 0,
            Compression::Zlib(_) => 1,
            Compression::Snappy => 2,
            Compression::Lz4 => 4,
            Compression::Zstd(_) => 5,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::Zlib(level) => write!(f, "zlib:{level}"),
            Compression::Zstd(level) => write!(f, "zstd:{level}"),
            other => f.write_str(other.name()),
        }
    }
}

impl FromStr for Compression {
    type Err = Error;

    /// Reads `none`, `zlib[:level]`, `snappy`, `lz4` or `zstd[:level]`.
    fn from_str(text: &str) -> Result<Compression> {
        let wrong = |reason| Error::Option {
            name: "compression",
            value: text.to_owned(),
            reason,
        };
        const KNOWN: &str = "none, zlib[:level], snappy, lz4 and zstd[:level] are known";
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => {
                let level = level.parse::<u8>().map_err(|_| wrong(KNOWN))?;
                (name, Some(level))
            }
            None => (text, None),
        };
        let compression = match (name, level) {
            ("none", None) => Compression::None,
            ("snappy", None) => Compression::Snappy,
            ("lz4", None) => Compression::Lz4,
            ("zlib", level) => Compression::Zlib(level.unwrap_or(6).into()),
            ("zstd", level) => Compression::Zstd(level.unwrap_or(1).into()),
            _ => return Err(wrong(KNOWN)),
        };
        compression.check()?;
        Ok(compression)
    }
}

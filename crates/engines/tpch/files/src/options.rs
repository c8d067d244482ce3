//! The options that a job is made of: format, codec, mode, and how a table is cut into files.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A format and its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The format of all files.
    pub format: Format,
    /// The codec for pages, which must be `none` for text.
    pub compression: Compression,
    /// Options of single columns of Parquet files, by name, such as `zstd:3,plain`.
    pub columns: Vec<(String, String)>,
    /// The version of Parquet's data pages, 1 or 2.
    pub page_version: u8,
    /// The most rows of a row group or stripe. There are fewer if memory is short.
    pub group_rows: Option<u64>,
    /// About how many encoded bytes a row group or stripe has.
    pub group_bytes: Option<u64>,
}

/// A file format, by the name of which files end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// Apache Parquet, with one row group for each piece.
    Parquet,
    /// Apache ORC, with one stripe for each piece.
    Orc,
    /// A header and comma-separated lines.
    Csv,
    /// The text that dbgen prints, byte for byte.
    Tbl,
}

/// The way in which rows become pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Rows become Arrow arrays, value by value, and go to the ordinary library's writer.
    Baseline,
    /// Columns of values go to our writer, in buffers that are used again. It finds dictionaries by
    /// hashing.
    ZeroCopy,
    /// Codes and slices go straight into encoded pages. No string is made and nothing is hashed.
    TrueZeroCopy,
}

/// A codec for pages, parsed from `none`, `snappy`, `zstd:LEVEL` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    /// Pages are stored as they are.
    None,
    /// Snappy, the default of Parquet and ORC.
    Snappy,
    /// Zstandard at a level from 1 to 22.
    Zstd(i32),
    /// LZ4 blocks without any framing.
    Lz4,
    /// Deflate, which only ORC files can have.
    Zlib,
}

/// How a table is cut into files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Split {
    /// Each table is one file.
    Whole,
    /// One part of each table is written, while the others are written elsewhere.
    Part {
        /// The number of the part, from 1.
        part: u64,
        /// The count of all parts.
        parts: u64,
    },
    /// Each table has so many parts, and all are written, a file each.
    Parts(u64),
}

impl Layout {
    /// A format with its defaults, which are snappy for Parquet and ORC and no codec for text.
    pub fn new(format: Format) -> Layout {
        Layout {
            format,
            compression: match format {
                Format::Parquet | Format::Orc => Compression::Snappy,
                Format::Csv | Format::Tbl => Compression::None,
            },
            columns: Vec::new(),
            page_version: 1,
            group_rows: None,
            group_bytes: None,
        }
    }

    /// Checks the options beside each other and beside the mode.
    ///
    /// # Errors
    /// [`Error::Together`] for options that exclude each other, [`Error::Option`] for a single one.
    pub(crate) fn check(&self, mode: Mode) -> Result<(), Error> {
        let refuse = |reason: String| Err(Error::Together(reason));
        let text = matches!(self.format, Format::Csv | Format::Tbl);
        if text && self.compression != Compression::None {
            return refuse(format!(
                "{} files are not compressed here: --compression none, and a pipe into the program of your choice with --sink stdout",
                self.format
            ));
        }
        if self.format == Format::Parquet && self.compression == Compression::Zlib {
            return Err(self.no_zlib());
        }
        if !matches!(self.page_version, 1 | 2) {
            let given = self.page_version.to_string();
            return Err(Error::option("page-version", given, "1 or 2"));
        }
        if !self.columns.is_empty() && (self.format != Format::Parquet || mode == Mode::Baseline) {
            return refuse(format!(
                "single columns have options in Parquet and in the modes zero-copy and true-zero-copy, not in {} and {mode}",
                self.format
            ));
        }
        if self.group_rows == Some(0) || self.group_bytes == Some(0) {
            return refuse("a row group has at least one row and one byte".to_owned());
        }
        Ok(())
    }

    /// The error for zlib in Parquet files.
    pub fn no_zlib(&self) -> Error {
        Error::option(
            "compression",
            "zlib",
            "none, snappy, zstd or lz4 for Parquet; zlib is for ORC",
        )
    }
}

impl Format {
    /// All formats, the columnar ones first.
    pub const ALL: [Format; 4] = [Format::Parquet, Format::Orc, Format::Csv, Format::Tbl];

    /// Its name, which is also the ending of its files.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Orc => "orc",
            Format::Csv => "csv",
            Format::Tbl => "tbl",
        }
    }
}

impl Mode {
    /// All modes, the slowest first.
    pub const ALL: [Mode; 3] = [Mode::Baseline, Mode::ZeroCopy, Mode::TrueZeroCopy];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Baseline => "baseline",
            Mode::ZeroCopy => "zero-copy",
            Mode::TrueZeroCopy => "true-zero-copy",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.write_str("none"),
            Compression::Snappy => f.write_str("snappy"),
            Compression::Zstd(level) => write!(f, "zstd:{level}"),
            Compression::Lz4 => f.write_str("lz4"),
            Compression::Zlib => f.write_str("zlib"),
        }
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Format, Error> {
        Format::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| Error::option("format", text, "parquet, orc, csv or tbl"))
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Mode, Error> {
        Mode::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| Error::option("mode", text, "baseline, zero-copy or true-zero-copy"))
    }
}

impl FromStr for Compression {
    type Err = Error;

    fn from_str(text: &str) -> Result<Compression, Error> {
        let wanted = "none, snappy, zstd, zstd:1 to zstd:22, lz4 or zlib";
        match text {
            "none" => Ok(Compression::None),
            "snappy" => Ok(Compression::Snappy),
            "zstd" => Ok(Compression::Zstd(1)),
            "lz4" => Ok(Compression::Lz4),
            "zlib" => Ok(Compression::Zlib),
            _ => text
                .strip_prefix("zstd:")
                .and_then(|level| level.parse().ok())
                .filter(|level| (1..=22).contains(level))
                .map(Compression::Zstd)
                .ok_or_else(|| Error::option("compression", text, wanted)),
        }
    }
}

impl FromStr for Split {
    type Err = Error;

    /// Reads `2/8`, for example, which is the second of eight parts.
    fn from_str(text: &str) -> Result<Split, Error> {
        let wrong = || Error::option("part", text, "such as 2/8, the second of eight");
        let (part, parts) = text.split_once('/').ok_or_else(wrong)?;
        let (part, parts): (u64, u64) = match (part.parse(), parts.parse()) {
            (Ok(part), Ok(parts)) => (part, parts),
            _ => return Err(wrong()),
        };
        if part == 0 || part > parts {
            return Err(Error::Generator(dyno_tpch::Error::Part { part, parts }));
        }
        Ok(Split::Part { part, parts })
    }
}

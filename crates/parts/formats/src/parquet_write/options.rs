//! The options of a Parquet file, and how they are parsed.

use std::fmt;
use std::str::FromStr;

use super::error::{Error, Result};

/// How a file is written. The default is version 1 pages with snappy, page index and checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The codec of columns without one of their own. A chunk that it would not make smaller by a
    /// ninth stays uncompressed, which the first page of each chunk decides.
    pub compression: Compression,
    /// The form of data pages.
    pub page_version: PageVersion,
    /// Whether to write the bounds and places of all pages behind the row groups.
    pub page_index: bool,
    /// Options of single columns, by name. The last entry for a name counts.
    pub columns: Vec<(String, ColumnOptions)>,
    /// Columns by which the rows of each row group are sorted, ascending. The writer checks it and
    /// refuses rows that are not.
    pub sorted_by: Vec<String>,
    /// Key-value metadata for the file's footer.
    pub key_values: Vec<(String, String)>,
    /// Whether [`Encoding::Auto`] keeps text PLAIN or in a dictionary. The vectorised reader of
    /// Iceberg in Spark has no other encodings of text.
    pub plain_text: bool,
    /// Whether the schema numbers the columns, from 1 in their order, as table formats want it.
    pub field_ids: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            compression: Compression::Snappy,
            page_version: PageVersion::V1,
            page_index: true,
            columns: Vec::new(),
            sorted_by: Vec::new(),
            key_values: Vec::new(),
            plain_text: false,
            field_ids: false,
        }
    }
}

/// The options of one column, which are parsed from a list like `zstd:3,plain`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnOptions {
    /// The codec to use whether it pays or not, or `None` for that of the file.
    pub compression: Option<Compression>,
    /// The encoding, [`Encoding::Auto`] unless set.
    pub encoding: Encoding,
}

/// A codec for pages, parsed from `none`, `snappy`, `lz4_raw`, `zstd` or `zstd:LEVEL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Pages are stored as they are.
    None,
    /// Snappy blocks without its framing format.
    Snappy,
    /// Zstandard of a level from 1 to 22.
    Zstd(i32),
    /// LZ4 blocks without any framing.
    Lz4Raw,
}

/// How the values of a column become bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// The encoding that makes the first rows of a row group smallest, with some weight on the time
    /// that it takes. Columns of codes keep their codes.
    #[default]
    Auto,
    /// PLAIN, which stores values as they are.
    Plain,
    /// A dictionary in each column chunk. One that grows beyond 8 MiB is an error.
    Dictionary,
    /// Differences, by DELTA_BINARY_PACKED for integers and DELTA_LENGTH_BYTE_ARRAY for text.
    Delta,
    /// DELTA_BYTE_ARRAY, for text only, which leaves out what each value shares with the one
    /// before.
    Prefix,
}

/// The form of data pages.
///
/// Version 1 is the default because every reader has it. For columns without nulls or lists the two
/// differ only in that a single page of version 2 may stay uncompressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PageVersion {
    /// Version 1, which the format calls DATA_PAGE.
    #[default]
    V1,
    /// Version 2, which the format calls DATA_PAGE_V2.
    V2,
}

impl Compression {
    /// The format's number for it.
    pub(super) fn codec(self) -> i32 {
        match self {
            Compression::None => 0,
            Compression::Snappy => 1,
            Compression::Zstd(_) => 6,
            Compression::Lz4Raw => 7,
        }
    }

    /// Refuses a level that the codec does not have.
    ///
    /// # Errors
    /// [`Error::Level`].
    pub(super) fn check(self) -> Result<()> {
        match self {
            Compression::Zstd(level) if !(1..=22).contains(&level) => Err(Error::Level {
                given: level.to_string(),
            }),
            _ => Ok(()),
        }
    }
}

impl FromStr for Compression {
    type Err = Error;

    fn from_str(given: &str) -> Result<Compression> {
        let (name, level) = match given.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (given, None),
        };
        let compression = match (name.to_ascii_lowercase().as_str(), level) {
            ("none" | "uncompressed", None) => Compression::None,
            ("snappy", None) => Compression::Snappy,
            ("lz4" | "lz4_raw", None) => Compression::Lz4Raw,
            ("zstd", None) => Compression::Zstd(1),
            ("zstd", Some(level)) => {
                Compression::Zstd(level.parse().map_err(|_| Error::Level {
                    given: level.to_owned(),
                })?)
            }
            _ => {
                return Err(Error::UnknownOption {
                    given: given.to_owned(),
                });
            }
        };
        compression.check()?;
        Ok(compression)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.write_str("none"),
            Compression::Snappy => f.write_str("snappy"),
            Compression::Zstd(level) => write!(f, "zstd:{level}"),
            Compression::Lz4Raw => f.write_str("lz4_raw"),
        }
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(given: &str) -> Result<Encoding> {
        match given.to_ascii_lowercase().as_str() {
            "auto" => Ok(Encoding::Auto),
            "plain" => Ok(Encoding::Plain),
            "dictionary" => Ok(Encoding::Dictionary),
            "delta" => Ok(Encoding::Delta),
            "prefix" => Ok(Encoding::Prefix),
            _ => Err(Error::UnknownOption {
                given: given.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::Auto => "auto",
            Encoding::Plain => "plain",
            Encoding::Dictionary => "dictionary",
            Encoding::Delta => "delta",
            Encoding::Prefix => "prefix",
        })
    }
}

impl FromStr for ColumnOptions {
    type Err = Error;

    fn from_str(given: &str) -> Result<ColumnOptions> {
        let (mut compression, mut encoding) = (None, None);
        let twice = |what| Error::GivenTwice {
            given: given.to_owned(),
            what,
        };
        for word in given.split(',').map(str::trim) {
            if let Ok(found) = word.parse::<Encoding>() {
                if encoding.replace(found).is_some() {
                    return Err(twice("the encoding"));
                }
            } else if compression.replace(word.parse::<Compression>()?).is_some() {
                return Err(twice("the compression"));
            }
        }
        Ok(ColumnOptions {
            compression,
            encoding: encoding.unwrap_or_default(),
        })
    }
}

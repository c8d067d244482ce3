//! An open Parquet file, with its footer and its columns by name.

use std::fs::File;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::ReadError;
use super::codes::CodeReader;
use super::codings::{Codec, Encoding};
use super::ints::IntReader;
use super::metadata::{Leaf, Meaning, Metadata, Physical};
use super::pages::Pages;
use super::source::Source;
use super::values::ValueReader;

/// The bytes that a file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";
/// The bytes that a file ends with whose footer is encrypted.
const ENCRYPTED: &[u8; 4] = b"PARE";
/// Bytes behind the footer, which are its length and the magic.
const TAIL_BYTES: u64 = 8;

/// The type of a column that is read as codes or integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Byte arrays, which are not checked to be UTF-8.
    String,
    /// Integers of `bits` bits (8, 16, 32 or 64), stored as INT32 or, from 64 on, as INT64.
    Int {
        /// The width that the schema declares.
        bits: u8,
        /// Whether negative values are allowed.
        signed: bool,
    },
}

impl ColumnKind {
    /// Bytes of a PLAIN value, or 0 for strings, which have no fixed size.
    pub(super) fn stored_bytes(self) -> usize {
        match self {
            Self::String => 0,
            Self::Int { bits: 64, .. } => 8,
            Self::Int { .. } => 4,
        }
    }

    /// Widens PLAIN values to `i64`, and checks them against the declared width.
    pub(super) fn widen(self, stored: &[u8], out: &mut [i64]) -> Result<(), ReadError> {
        if self.stored_bytes() == 8 {
            for (value, word) in out.iter_mut().zip(stored.as_chunks::<8>().0) {
                *value = i64::from_le_bytes(*word);
            }
            return Ok(());
        }
        for (value, word) in out.iter_mut().zip(stored.as_chunks::<4>().0) {
            *value = i64::from(i32::from_le_bytes(*word));
        }
        self.narrow(out)
    }

    /// Checks values of narrow columns against their type. Those above 2^31 of an unsigned column
    /// of 32 bits arrive as negative numbers and are turned into what they mean.
    pub(super) fn narrow(self, values: &mut [i64]) -> Result<(), ReadError> {
        let (low, high) = match self {
            Self::Int {
                bits: 32,
                signed: false,
            } => {
                for value in values.iter_mut() {
                    *value &= i64::from(u32::MAX);
                }
                return Ok(());
            }
            Self::Int {
                bits: bits @ ..64,
                signed: true,
            } => (-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1),
            Self::Int {
                bits: bits @ ..64,
                signed: false,
            } => (0, (1i64 << bits) - 1),
            Self::Int { .. } | Self::String => return Ok(()),
        };
        // Users of narrow columns add values up in fewer bits, so one that the type does not have
        // must not get through. The extremes are looked at because such a loop is vectorised.
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for value in values.iter() {
            least = least.min(*value);
            most = most.max(*value);
        }
        if values.is_empty() || (least >= low && most <= high) {
            return Ok(());
        }
        Err(ReadError::damaged(format!(
            "values {least} to {most} in a column of {self:?}"
        )))
    }

    /// The kind of a column, or `None` if it is not read as codes or integers.
    fn from_leaf(leaf: &Leaf) -> Option<Self> {
        if leaf.definition_levels > 0 {
            return None;
        }
        let stored_bits = match leaf.physical {
            Physical::ByteArray => return Some(Self::String),
            Physical::Int32 => 32,
            Physical::Int64 => 64,
            Physical::Other => return None,
        };
        let (bits, signed) = match leaf.meaning {
            Meaning::Plain => (stored_bits, true),
            Meaning::Integer { bits, signed } if leaf.is_logical => (bits, signed),
            _ => return None,
        };
        let fits = matches!((bits, stored_bits), (8 | 16 | 32, 32) | (64, 64));
        fits.then_some(Self::Int { bits, signed })
    }
}

/// An open file. Readers made from it keep the mapping alive, so it may be dropped before them.
#[derive(Debug)]
pub struct ParquetFile {
    path: PathBuf,
    source: Source,
    metadata: Metadata,
}

impl ParquetFile {
    /// Maps the file and reads its footer. Only for files that are neither changed nor cut while
    /// they are open, such as those of a committed table.
    ///
    /// # Errors
    /// The file is missing or not readable, or it is not Parquet.
    pub fn map(path: &Path) -> Result<Self, ReadError> {
        let mapped = File::open(path).and_then(|file| super::mapping::map(&file));
        let bytes = mapped.map_err(|source| ReadError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::with(path, Source::Mapped(bytes))
    }

    /// Opens the file and reads its footer. Each column chunk is read into memory when a reader for
    /// it is made. For files that another program may change.
    ///
    /// # Errors
    /// The file is missing or not readable, or it is not Parquet.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::from_file(
            path,
            File::open(path).map_err(|source| ReadError::Io {
                path: path.to_owned(),
                source,
            })?,
        )
    }

    /// Like [`ParquetFile::open`], for a file that is open already. `path` is for errors only.
    ///
    /// # Errors
    /// The file is not readable, or it is not Parquet.
    pub fn from_file(path: &Path, file: File) -> Result<Self, ReadError> {
        Self::with(path, Source::Read(file))
    }

    fn with(path: &Path, source: Source) -> Result<Self, ReadError> {
        let metadata = with_footer(path, &source, Metadata::read)?;
        Ok(Self {
            path: path.to_owned(),
            source,
            metadata,
        })
    }

    /// All bytes of the file, if it was opened by [`ParquetFile::map`].
    pub fn mapped(&self) -> Option<&Bytes> {
        match &self.source {
            Source::Mapped(bytes) => Some(bytes),
            Source::Read(_) => None,
        }
    }

    /// The path that it was opened from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of row groups in the file.
    pub fn row_groups(&self) -> usize {
        self.metadata.groups.len()
    }

    /// The number of rows that the footer promises.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.rows).unwrap_or(0)
    }

    /// The number of rows that the footer promises for one row group.
    pub fn row_group_rows(&self, row_group: usize) -> u64 {
        u64::try_from(self.metadata.groups[row_group].rows).unwrap_or(0)
    }

    /// The columns in the order of the file, those within groups included.
    pub fn leaves(&self) -> &[Leaf] {
        &self.metadata.leaves
    }

    /// How the pages of a column are compressed in one row group.
    pub fn codec(&self, row_group: usize, column: usize) -> Codec {
        self.metadata.groups[row_group].chunks[column].codec
    }

    /// Bytes in the file of a column's pages in one row group, with their headers.
    pub fn chunk_bytes(&self, row_group: usize, column: usize) -> u64 {
        let bytes = self.metadata.groups[row_group].chunks[column].bytes;
        u64::try_from(bytes).unwrap_or(0)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.leaves().iter().position(|leaf| leaf.path == name)
    }

    /// The index and kind of a top-level column. `None` if it is missing, nested, nullable or of
    /// another type.
    pub fn column(&self, name: &str) -> Option<(usize, ColumnKind)> {
        let index = self.position(name)?;
        ColumnKind::from_leaf(&self.leaves()[index]).map(|kind| (index, kind))
    }

    /// The index and kind of a top-level column of timestamps, which are read as the integers that
    /// are stored. `None` if it is missing, nested, nullable or of another type.
    pub fn moments(&self, name: &str) -> Option<(usize, ColumnKind)> {
        let index = self.position(name)?;
        let leaf = &self.leaves()[index];
        let moments = matches!(leaf.meaning, Meaning::Timestamp { .. }) && leaf.is_logical;
        let flat = leaf.definition_levels == 0;
        let kind = ColumnKind::Int {
            bits: 64,
            signed: true,
        };
        (flat && moments && leaf.physical == Physical::Int64).then_some((index, kind))
    }

    /// Whether the footer says that all data pages of a column are dictionary codes.
    pub fn is_coded(&self, column: usize) -> bool {
        // The list of encodings has PLAIN for the dictionary page itself. Our own writer codes all
        // pages of a column chunk or none; others may give up in the middle, unless they count
        // pages.
        let ours = self.metadata.created_by.starts_with("dyno version ");
        self.metadata.groups.iter().all(|group| {
            let chunk = &group.chunks[column];
            let coded = match chunk.of_data_pages {
                Some(encodings) => {
                    !encodings.is_empty()
                        && encodings
                            .are_only(&[Encoding::RLE_DICTIONARY, Encoding::PLAIN_DICTIONARY])
                }
                None => ours || !chunk.encodings.has(Encoding::PLAIN),
            };
            group.rows == 0 || (coded && chunk.dictionary_at.is_some())
        })
    }

    /// Whether [`IntReader`] knows every encoding that the footer names for a column.
    pub fn is_readable(&self, column: usize) -> bool {
        self.metadata.groups.iter().all(|group| {
            let encodings = group.chunks[column].encodings;
            encodings.are_only(&[
                Encoding::PLAIN,
                Encoding::RLE,
                Encoding::RLE_DICTIONARY,
                Encoding::PLAIN_DICTIONARY,
                Encoding::DELTA_BINARY_PACKED,
            ])
        })
    }

    /// Reads the codes of a string column in one row group.
    ///
    /// # Errors
    /// The first page is damaged or is not a dictionary; the compression is not known here.
    pub fn codes(&self, row_group: usize, column: usize) -> Result<CodeReader, ReadError> {
        CodeReader::new(self.pages(row_group, column)?)
    }

    /// Reads the values of an integer column in one row group.
    ///
    /// # Errors
    /// The compression is not known here.
    pub fn ints(
        &self,
        row_group: usize,
        column: usize,
        kind: ColumnKind,
    ) -> Result<IntReader, ReadError> {
        Ok(IntReader::new(self.pages(row_group, column)?, kind))
    }

    /// Reads the values of a column in one row group, which may be NULL.
    ///
    /// # Errors
    /// The column is nested, or of another type than integers and strings, or its compression is
    /// not known here.
    pub fn values(&self, row_group: usize, column: usize) -> Result<ValueReader, ReadError> {
        let leaf = &self.leaves()[column];
        let flat = leaf.repetition_levels == 0 && leaf.definition_levels <= 1;
        if !flat || leaf.physical == Physical::Other {
            return Err(ReadError::unsupported(format!("column {}", leaf.path)));
        }
        Ok(ValueReader::new(self.pages(row_group, column)?, leaf))
    }

    fn pages(&self, row_group: usize, column: usize) -> Result<Pages, ReadError> {
        let group = &self.metadata.groups[row_group];
        let chunk = &group.chunks[column];
        if chunk.values != group.rows {
            return Err(ReadError::damaged(format!(
                "{} values in a column of {} rows",
                chunk.values, group.rows
            )));
        }
        let io = |source| ReadError::Io {
            path: self.path.clone(),
            source,
        };
        // Offsets and lengths come from the footer. Negative ones are refused here, and those that
        // leave the file by the source before it allocates.
        let start = chunk.dictionary_at.unwrap_or(chunk.data_at);
        let range = u64::try_from(start)
            .ok()
            .zip(u64::try_from(chunk.bytes).ok());
        let range =
            range.ok_or_else(|| ReadError::damaged("a column chunk at a negative place"))?;
        let segment = self.source.segment(range).map_err(io)?;
        let optional = self.leaves()[column].definition_levels > 0;
        Pages::new(segment, chunk, range, optional, self.path.clone())
    }
}

/// What `read` makes of the footer of the file in `path`; an error names the file.
pub(super) fn with_footer<T>(
    path: &Path,
    source: &Source,
    read: impl FnOnce(&[u8]) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let read = footer(source).map(|footer| footer.and_then(|footer| read(&footer)));
    let read = read.map_err(|source| ReadError::Io {
        path: path.to_owned(),
        source,
    })?;
    read.map_err(|error| ReadError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// Reads the bytes of the footer, which is found from the end of the file.
fn footer(source: &Source) -> std::io::Result<Result<Bytes, ReadError>> {
    let refuse = |reason: String| Ok(Err(ReadError::Metadata { reason }));
    // Only the end of the file is looked at. The magic at its front says nothing more, and reading
    // it would cost a second access to the disk.
    let len = source.len()?;
    let Some(end) = len
        .checked_sub(TAIL_BYTES)
        .filter(|end| *end >= MAGIC.len() as u64)
    else {
        return refuse(format!("{len} bytes are too few for a Parquet file"));
    };
    let tail = source.segment((end, TAIL_BYTES))?.bytes(end, TAIL_BYTES);
    let Some((size, magic)) = tail
        .as_deref()
        .and_then(|tail| tail.split_first_chunk::<4>())
    else {
        return refuse("it ends while it is read".to_owned());
    };
    if magic == ENCRYPTED {
        return refuse("its footer is encrypted".to_owned());
    }
    if magic != MAGIC {
        return refuse("it is not a Parquet file".to_owned());
    }
    let size = u64::from(u32::from_le_bytes(*size));
    let Some(start) = end.checked_sub(size) else {
        return refuse(format!("its footer is said to have {size} of {len} bytes"));
    };
    match source.segment((start, size))?.bytes(start, size) {
        Some(footer) => Ok(Ok(footer)),
        None => refuse("it ends while it is read".to_owned()),
    }
}

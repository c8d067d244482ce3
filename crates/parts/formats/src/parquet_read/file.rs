//! An open Parquet file: its footer, its columns by name.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parquet::basic::{ConvertedType, Encoding, LogicalType, PageType, Repetition, Type};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::schema::types::ColumnDescriptor;

use super::ReadError;
use super::codes::CodeReader;
use super::ints::IntReader;
use super::page_index::PageIndex;
use super::pages::Pages;
use super::source::Source;

/// What a column holds, as far as the readers here know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Byte arrays.
    String,
    /// Integers of `bits` bits (8, 16, 32 or 64), stored as INT32 or, from 64 on, as INT64.
    Int {
        /// The declared width.
        bits: u8,
        /// Whether negative values are allowed.
        signed: bool,
    },
}

impl ColumnKind {
    /// Bytes that a PLAIN value takes; strings have no fixed size and say 0.
    pub(super) fn stored_bytes(self) -> usize {
        match self {
            Self::String => 0,
            Self::Int { bits: 64, .. } => 8,
            Self::Int { .. } => 4,
        }
    }

    /// PLAIN values to `i64`, checked against the declared width.
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

    /// Checks values of narrow columns against their type; INT32 bits above 2^31 of an unsigned
    /// 32-bit column arrive as negative numbers and become what they mean.
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

    fn of(column: &ColumnDescriptor) -> Option<Self> {
        let info = column.self_type().get_basic_info();
        let flat = info.has_repetition()
            && info.repetition() == Repetition::REQUIRED
            && column.max_def_level() == 0
            && column.max_rep_level() == 0;
        if !flat {
            return None;
        }
        let stored_bits = match column.physical_type() {
            Type::BYTE_ARRAY => return Some(Self::String),
            Type::INT32 => 32,
            Type::INT64 => 64,
            _ => return None,
        };
        let (bits, signed) = match column.logical_type_ref() {
            None => (stored_bits, true),
            Some(LogicalType::Integer(int)) => (u8::try_from(int.bit_width).ok()?, int.is_signed),
            Some(_) => return None,
        };
        let plain = matches!(column.converted_type(), ConvertedType::NONE)
            || column.logical_type_ref().is_some();
        let fits = matches!((bits, stored_bits), (8 | 16 | 32, 32) | (64, 64));
        (plain && fits).then_some(Self::Int { bits, signed })
    }
}

/// An open file. Cheap to clone parts from; readers keep the mapping alive.
#[derive(Debug)]
pub struct ParquetFile {
    path: PathBuf,
    source: Source,
    metadata: ParquetMetaData,
    page_index: OnceLock<Option<PageIndex>>,
}

impl ParquetFile {
    /// Maps the file and reads its footer. Only for files that nobody changes or cuts while they
    /// are open, such as those of a committed table.
    ///
    /// # Errors
    /// The file is missing or not readable; it is not Parquet.
    pub fn map(path: &Path) -> Result<Self, ReadError> {
        Self::with(path, |file| super::mapping::map(&file).map(Source::Mapped))
    }

    /// Opens the file and reads its footer; each column chunk is read when it is asked for. For
    /// files of somebody else.
    ///
    /// # Errors
    /// The file is missing or not readable; it is not Parquet.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::with(path, |file| Ok(Source::Read(file)))
    }

    fn with(
        path: &Path,
        source: impl FnOnce(File) -> std::io::Result<Source>,
    ) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io {
            path: path.to_owned(),
            source,
        };
        let source = source(File::open(path).map_err(io)?).map_err(io)?;
        let metadata = match &source {
            Source::Mapped(bytes) => ParquetMetaDataReader::new().parse_and_finish(bytes),
            Source::Read(file) => ParquetMetaDataReader::new().parse_and_finish(file),
        };
        let metadata = metadata.map_err(|source| ReadError::Parquet {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            source,
            metadata,
            page_index: OnceLock::new(),
        })
    }

    /// What the file says of its pages, read when it is first asked for; none when it says nothing, or
    /// what it says can't be read: it only ever saves work.
    pub fn page_index(&self) -> Option<&PageIndex> {
        let read = || match &self.source {
            Source::Mapped(bytes) => PageIndex::read(&self.metadata, bytes),
            Source::Read(file) => PageIndex::read(&self.metadata, file),
        };
        self.page_index.get_or_init(read).as_ref()
    }

    /// Where it was opened from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Row groups in the file.
    pub fn row_groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// Rows in the file.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// Rows of one row group.
    pub fn row_group_rows(&self, row_group: usize) -> u64 {
        u64::try_from(self.metadata.row_group(row_group).num_rows()).unwrap_or(0)
    }

    /// The index and kind of a top-level column; none when it is missing, nested, nullable or of
    /// another type.
    pub fn column(&self, name: &str) -> Option<(usize, ColumnKind)> {
        let schema = self.metadata.file_metadata().schema_descr();
        let index = schema
            .columns()
            .iter()
            .position(|column| column.path().string() == name)?;
        ColumnKind::of(&schema.column(index)).map(|kind| (index, kind))
    }

    /// The index and kind of a top-level column of timestamps, which are read as the integers that
    /// they are stored as; none when it is missing, nested, nullable or of another type.
    pub fn moments(&self, name: &str) -> Option<(usize, ColumnKind)> {
        let schema = self.metadata.file_metadata().schema_descr();
        let found = (0..schema.num_columns())
            .map(|index| (index, schema.column(index)))
            .find(|(_, column)| column.path().string() == name)?;
        let (index, column) = found;
        let flat = column.max_def_level() == 0 && column.max_rep_level() == 0;
        let moments = matches!(
            column.logical_type_ref(),
            Some(LogicalType::Timestamp { .. })
        );
        let kind = ColumnKind::Int {
            bits: 64,
            signed: true,
        };
        (flat && moments && column.physical_type() == Type::INT64).then_some((index, kind))
    }

    /// The footer, for readers of other kinds.
    pub fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    /// Whether the footer says that all data pages of a column are dictionary codes.
    pub fn is_coded(&self, column: usize) -> bool {
        let ours = self.is_ours();
        self.metadata.row_groups().iter().all(|group| {
            let chunk = group.column(column);
            let coded = match (
                chunk.page_encoding_stats_mask(),
                chunk.page_encoding_stats(),
            ) {
                (Some(data_pages), _) => {
                    data_pages.is_only(Encoding::RLE_DICTIONARY)
                        || data_pages.is_only(Encoding::PLAIN_DICTIONARY)
                }
                (None, Some(pages)) => pages.iter().all(|page| {
                    page.page_type == PageType::DICTIONARY_PAGE
                        || matches!(
                            page.encoding,
                            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
                        )
                }),
                // The list of encodings has PLAIN for the dictionary page itself. Our own writer
                // codes all pages of a column chunk or none; others may give up in the middle.
                (None, None) => {
                    ours || !chunk
                        .encodings()
                        .any(|encoding| encoding == Encoding::PLAIN)
                }
            };
            group.num_rows() == 0 || (coded && chunk.dictionary_page_offset().is_some())
        })
    }

    fn is_ours(&self) -> bool {
        let writer = self.metadata.file_metadata().created_by();
        writer.is_some_and(|writer| writer.starts_with("dyno version "))
    }

    /// Whether [`IntReader`] knows every encoding that the footer names for a column.
    pub fn is_readable(&self, column: usize) -> bool {
        self.metadata.row_groups().iter().all(|group| {
            group.column(column).encodings().all(|encoding| {
                matches!(
                    encoding,
                    Encoding::PLAIN
                        | Encoding::RLE
                        | Encoding::RLE_DICTIONARY
                        | Encoding::PLAIN_DICTIONARY
                        | Encoding::DELTA_BINARY_PACKED
                )
            })
        })
    }

    /// Reads the codes of a string column in one row group.
    ///
    /// # Errors
    /// The first page is damaged, or no dictionary.
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

    fn pages(&self, row_group: usize, column: usize) -> Result<Pages, ReadError> {
        let chunk = self.metadata.row_group(row_group).column(column);
        let rows = self.metadata.row_group(row_group).num_rows();
        if chunk.num_values() != rows {
            return Err(ReadError::damaged(format!(
                "{} values in a column of {rows} rows",
                chunk.num_values()
            )));
        }
        let io = |source| ReadError::Io {
            path: self.path.clone(),
            source,
        };
        let start = chunk
            .dictionary_page_offset()
            .unwrap_or(chunk.data_page_offset());
        let range = u64::try_from(start)
            .ok()
            .zip(u64::try_from(chunk.compressed_size()).ok());
        let range =
            range.ok_or_else(|| ReadError::damaged("a column chunk at a negative place"))?;
        let part = self.source.part(range).map_err(io)?;
        Pages::new(part, chunk, self.path.clone())
    }
}

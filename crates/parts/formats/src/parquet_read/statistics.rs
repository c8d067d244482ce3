//! Reads what a file's footer says of each column: bytes, values, nulls and bounds.
//!
//! It walks over the footer by itself, because the readers of pages need none of this and a query
//! that opens many files would pay for it.

use std::fs::File;
use std::path::Path;

use super::ReadError;
use super::file::with_footer;
use super::metadata::{Leaf, Meaning, Metadata, Physical, at};
use super::source::Source;
use super::thrift::{Field, Reader};

type Result<T> = std::result::Result<T, ReadError>;

/// What a footer says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatistics {
    /// Rows of all row groups.
    pub rows: u64,
    /// The columns, in the order of the file.
    pub columns: Vec<ColumnStatistics>,
}

/// What a footer says of a column, over all row groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnStatistics {
    /// The name of the leaf.
    pub name: String,
    /// Bytes of its pages with their headers, as stored.
    pub bytes: u64,
    /// How many values it has, nulls included.
    pub values: u64,
    /// How many of them are null; `None` unless every row group says it.
    pub nulls: Option<u64>,
    /// A bound that no value is below and one that no value is above, as PLAIN values without a
    /// length. `None` unless every row group with a value states both.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
}

/// The statistics of a column chunk.
#[derive(Debug, Default)]
struct ChunkStatistics {
    bytes: i64,
    values: i64,
    nulls: Option<i64>,
    min: Option<Vec<u8>>,
    max: Option<Vec<u8>>,
}

impl FileStatistics {
    /// Reads the footer of the file in `path`.
    ///
    /// # Errors
    /// The file is missing or not readable, or it is not Parquet.
    pub fn read(path: &Path) -> Result<FileStatistics> {
        let file = File::open(path).map_err(|source| ReadError::Io {
            path: path.to_owned(),
            source,
        })?;
        with_footer(path, &Source::Read(file), FileStatistics::from_footer)
    }

    fn from_footer(footer: &[u8]) -> Result<FileStatistics> {
        let metadata = Metadata::read(footer)?;
        let groups = groups(footer)?;
        let columns = metadata.leaves.iter().enumerate();
        let columns = columns.map(|(number, leaf)| {
            // Metadata has checked that each row group has all columns.
            let chunks = groups.iter().map(|group| &group[number]);
            merged(leaf, chunks)
        });
        Ok(FileStatistics {
            rows: unsigned(metadata.rows),
            columns: columns.collect(),
        })
    }
}

fn groups(footer: &[u8]) -> Result<Vec<Vec<ChunkStatistics>>> {
    let mut groups: Vec<Vec<ChunkStatistics>> = Vec::new();
    Reader::new(footer).structure(|reader, field| {
        match field.id {
            4 => {
                reader.structs(field, |reader, number, field| {
                    chunks(reader, field, at(&mut groups, number))
                })?;
            }
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(groups)
}

/// Reads a field of RowGroup, or skips it.
fn chunks(reader: &mut Reader<'_>, field: Field, chunks: &mut Vec<ChunkStatistics>) -> Result<()> {
    match field.id {
        1 => {
            reader.structs(field, |reader, number, field| {
                let chunk = at(chunks, number);
                match field.id {
                    3 => reader.inner(field, |reader, field| chunk.read(reader, field)),
                    _ => reader.skip(field),
                }
            })?;
        }
        _ => reader.skip(field)?,
    }
    Ok(())
}

impl ChunkStatistics {
    /// Reads a field of ColumnMetaData, or skips it.
    fn read(&mut self, reader: &mut Reader<'_>, field: Field) -> Result<()> {
        match field.id {
            5 => self.values = reader.int(field)?,
            7 => self.bytes = reader.int(field)?,
            12 => reader.inner(field, |reader, field| {
                match field.id {
                    3 => self.nulls = Some(reader.int(field)?),
                    // The older fields 1 and 2 are passed over: their order is not defined.
                    5 => self.max = Some(reader.binary(field)?.to_vec()),
                    6 => self.min = Some(reader.binary(field)?.to_vec()),
                    _ => reader.skip(field)?,
                }
                Ok(())
            })?,
            _ => reader.skip(field)?,
        }
        Ok(())
    }

    fn is_all_null(&self) -> bool {
        self.nulls == Some(self.values)
    }
}

fn merged<'a>(
    leaf: &Leaf,
    chunks: impl Iterator<Item = &'a ChunkStatistics> + Clone,
) -> ColumnStatistics {
    let nulls: Option<i64> = chunks.clone().map(|chunk| chunk.nulls).sum();
    // A row group of nulls alone has no bounds, and takes none from the others.
    let with_values = chunks.clone().filter(|chunk| !chunk.is_all_null());
    let mins = with_values
        .clone()
        .map(|chunk| Value::new(leaf, chunk.min.as_ref()?));
    let maxs = with_values.map(|chunk| Value::new(leaf, chunk.max.as_ref()?));
    let least = mins
        .collect::<Option<Vec<_>>>()
        .and_then(|all| all.into_iter().min());
    let greatest = maxs
        .collect::<Option<Vec<_>>>()
        .and_then(|all| all.into_iter().max());
    ColumnStatistics {
        name: leaf.path.clone(),
        bytes: unsigned(chunks.clone().map(|chunk| chunk.bytes).sum()),
        values: unsigned(chunks.map(|chunk| chunk.values).sum()),
        nulls: nulls.map(unsigned),
        bounds: least
            .zip(greatest)
            .map(|(least, greatest)| (least.plain(), greatest.plain())),
    }
}

/// A bound in the order of its column.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Value<'a> {
    Int32(i32),
    Int64(i64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// `None` if the bytes are not a value of the column, or its values have another order.
    fn new(leaf: &Leaf, bytes: &'a [u8]) -> Option<Value<'a>> {
        if matches!(leaf.meaning, Meaning::Integer { signed: false, .. }) {
            return None;
        }
        match leaf.physical {
            Physical::Int32 => Some(Value::Int32(i32::from_le_bytes(bytes.try_into().ok()?))),
            Physical::Int64 => Some(Value::Int64(i64::from_le_bytes(bytes.try_into().ok()?))),
            Physical::ByteArray if leaf.meaning == Meaning::Text => Some(Value::Bytes(bytes)),
            Physical::ByteArray | Physical::Other => None,
        }
    }

    fn plain(self) -> Vec<u8> {
        match self {
            Value::Int32(value) => value.to_le_bytes().to_vec(),
            Value::Int64(value) => value.to_le_bytes().to_vec(),
            Value::Bytes(bytes) => bytes.to_vec(),
        }
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

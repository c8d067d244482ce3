//! Reads the columns and the locations of their chunks from a file's footer (parquet.thrift,
//! FileMetaData). Statistics and key-value pairs are skipped, because nothing here needs them.

use super::ReadError;
use super::codings::{Codec, Encodings};
use super::thrift::{Field, Reader};

type Result<T> = std::result::Result<T, ReadError>;

/// How values are stored (parquet.thrift, Type).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    /// Integers of 4 bytes, INT32.
    Int32,
    /// Integers of 8 bytes, INT64.
    Int64,
    /// Strings of any number of bytes.
    ByteArray,
    /// Any other type: booleans, floats, strings of fixed length, and integers of 96 bits.
    Other,
}

/// What the stored values mean, by their logical type or, in files of older writers, by the
/// converted type that says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing but the stored values themselves.
    Plain,
    /// Integers of a declared width.
    Integer {
        /// How many bits they have.
        bits: u8,
        /// Whether they can be negative.
        signed: bool,
    },
    /// Times since 1970-01-01 00:00, UTC or local.
    Timestamp {
        /// How many of its units are a second.
        per_second: i64,
    },
    /// Decimals, of any precision and scale.
    Decimal,
    /// Text, which should be UTF-8.
    Text,
    /// Anything else, by its name in the format.
    Other(&'static str),
}

/// A leaf of the schema, which is a column of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Its name, behind the names of the groups that it lies in, with dots in between.
    pub path: String,
    /// The type in which values are stored.
    pub physical: Physical,
    /// What the stored values mean.
    pub meaning: Meaning,
    /// Whether `meaning` comes from the logical type and not only from the converted type of older
    /// writers.
    pub is_logical: bool,
    /// How many optional and repeated fields lie above each value, at most 255. It is 0 for a
    /// column that is REQUIRED.
    pub definition_levels: u8,
    /// How many of these are repeated.
    pub repetition_levels: u8,
}

/// Where the pages of a column in one row group lie, and how they are stored.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) codec: Codec,
    pub(super) values: i64,
    /// Bytes of its pages and their headers together.
    pub(super) bytes: i64,
    pub(super) data_at: i64,
    pub(super) dictionary_at: Option<i64>,
    pub(super) encodings: Encodings,
    /// The encodings of its data pages alone, if the footer counts pages.
    pub(super) of_data_pages: Option<Encodings>,
}

/// A row group, which has a chunk for each column.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) rows: i64,
    pub(super) chunks: Vec<Chunk>,
}

/// What this reader uses of a footer.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) leaves: Vec<Leaf>,
    pub(super) rows: i64,
    pub(super) groups: Vec<Group>,
    pub(super) created_by: String,
}

/// A node of the schema. The tree is stored with each group before its children.
#[derive(Debug, Default)]
struct Element {
    name: String,
    physical: Option<i32>,
    repetition: i32,
    children: usize,
    converted: Option<i32>,
    logical: Option<Meaning>,
}

impl Metadata {
    /// Reads the struct FileMetaData. Numbers of rows, offsets and lengths are as the file states
    /// them and not checked here.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let mut elements: Vec<Element> = Vec::new();
        let mut metadata = Metadata {
            leaves: Vec::new(),
            rows: 0,
            groups: Vec::new(),
            created_by: String::new(),
        };
        let mut reader = Reader::new(bytes);
        reader.structure(|reader, field| {
            match field.id {
                2 => {
                    reader.structs(field, |reader, number, field| {
                        element(reader, field, at(&mut elements, number))
                    })?;
                }
                3 => metadata.rows = reader.int(field)?,
                4 => groups(reader, field, &mut metadata.groups)?,
                6 => {
                    metadata.created_by = String::from_utf8_lossy(reader.binary(field)?).into();
                }
                _ => reader.skip(field)?,
            }
            Ok(())
        })?;
        metadata.leaves = leaves(&elements, bytes.len())?;
        // Everything else looks chunks up by the number of their column, so all groups must have
        // them all.
        let columns = metadata.leaves.len();
        match metadata
            .groups
            .iter()
            .find(|group| group.chunks.len() != columns)
        {
            Some(group) => Err(damaged(format!(
                "a row group has {} columns, the schema {columns}",
                group.chunks.len()
            ))),
            None => Ok(metadata),
        }
    }
}

/// The element with this number of a list whose fields come one by one. Elements without any field
/// are made when a later one comes. The list is as long as the file says, which the Thrift reader
/// has bound by the bytes that follow.
pub(super) fn at<T: Default>(list: &mut Vec<T>, number: usize) -> &mut T {
    if list.len() <= number {
        list.resize_with(number + 1, T::default);
    }
    &mut list[number]
}

fn element(reader: &mut Reader<'_>, field: Field, element: &mut Element) -> Result<()> {
    match field.id {
        1 => element.physical = Some(reader.i32(field)?),
        3 => element.repetition = reader.i32(field)?,
        4 => element.name = String::from_utf8_lossy(reader.binary(field)?).into(),
        5 => element.children = reader.size(field)?,
        6 => element.converted = Some(reader.i32(field)?),
        10 => element.logical = Some(logical(reader, field)?),
        _ => reader.skip(field)?,
    }
    Ok(())
}

/// The logical type is a union: a struct with one field, whose id says which type it is.
fn logical(reader: &mut Reader<'_>, field: Field) -> Result<Meaning> {
    let mut meaning = Meaning::Other("a type without a name");
    reader.inner(field, |reader, field| {
        meaning = match field.id {
            1 => Meaning::Text,
            5 => Meaning::Decimal,
            8 => timestamp(reader, field)?,
            10 => integer(reader, field)?,
            _ => Meaning::Other(name_of_logical(field.id)),
        };
        // The types with parameters have read their value above; it must be skipped for the others.
        match field.id {
            8 | 10 => Ok(()),
            _ => reader.skip(field),
        }
    })?;
    Ok(meaning)
}

fn timestamp(reader: &mut Reader<'_>, field: Field) -> Result<Meaning> {
    let mut per_second = 0;
    reader.inner(field, |reader, field| match field.id {
        2 => reader.inner(field, |reader, unit| {
            per_second = match unit.id {
                1 => 1_000,
                2 => 1_000_000,
                3 => 1_000_000_000,
                other => return Err(damaged(format!("unit {other} of time"))),
            };
            reader.skip(unit)
        }),
        _ => reader.skip(field),
    })?;
    match per_second {
        0 => Err(damaged("a timestamp without a unit".to_owned())),
        _ => Ok(Meaning::Timestamp { per_second }),
    }
}

fn integer(reader: &mut Reader<'_>, field: Field) -> Result<Meaning> {
    let (mut bits, mut signed) = (0, false);
    reader.inner(field, |reader, field| {
        match field.id {
            1 => bits = reader.i32(field)?,
            2 => signed = reader.boolean(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    let bits = u8::try_from(bits).map_err(|_| damaged(format!("integers of {bits} bits")))?;
    Ok(Meaning::Integer { bits, signed })
}

fn name_of_logical(id: i16) -> &'static str {
    match id {
        2 => "MAP",
        3 => "LIST",
        4 => "ENUM",
        6 => "DATE",
        7 => "TIME",
        11 => "NULL",
        12 => "JSON",
        13 => "BSON",
        14 => "UUID",
        15 => "FLOAT16",
        16 => "VARIANT",
        17 => "GEOMETRY",
        18 => "GEOGRAPHY",
        _ => "a type of a newer version",
    }
}

/// What a converted type, which older writers used, means.
fn converted(number: i32) -> Meaning {
    let integer = |bits, signed| Meaning::Integer { bits, signed };
    match number {
        0 => Meaning::Text,
        5 => Meaning::Decimal,
        9 => Meaning::Timestamp { per_second: 1_000 },
        10 => Meaning::Timestamp {
            per_second: 1_000_000,
        },
        11 => integer(8, false),
        12 => integer(16, false),
        13 => integer(32, false),
        14 => integer(64, false),
        15 => integer(8, true),
        16 => integer(16, true),
        17 => integer(32, true),
        18 => integer(64, true),
        1..=3 => Meaning::Other("MAP or LIST"),
        4 => Meaning::Other("ENUM"),
        6 => Meaning::Other("DATE"),
        7 | 8 => Meaning::Other("TIME"),
        19 => Meaning::Other("JSON"),
        20 => Meaning::Other("BSON"),
        21 => Meaning::Other("INTERVAL"),
        _ => Meaning::Other("a converted type of a newer version"),
    }
}

/// How many times the bytes of the footer the names of all columns may take, and what they may take
/// in any case. The row groups of a real footer repeat each name in full.
const NAMES_EXPANSION_MAX: usize = 64;
const NAMES_BYTES_ALLOWED: usize = 1 << 20;

/// Returns the leaves in their order. The elements are the tree, each group before its children.
fn leaves(elements: &[Element], footer_bytes: usize) -> Result<Vec<Leaf>> {
    // The name of a leaf has those of all groups above it, so a schema of nothing but groups within
    // groups, or of one long name above many leaves, stands for the square of its own size.
    let mut names_bytes_left = NAMES_EXPANSION_MAX
        .saturating_mul(footer_bytes)
        .saturating_add(NAMES_BYTES_ALLOWED);
    let (root, mut rest) = elements
        .split_first()
        .ok_or_else(|| damaged("a schema without a root".to_owned()))?;
    // The groups that the current element lies in, each with its path, the number of children that
    // are still to come, and its levels. It is a stack of our own because the schema may be nested
    // more deeply than this thread's.
    let mut open = vec![(String::new(), root.children, 0u8, 0u8)];
    let mut leaves = Vec::new();
    while let Some((path, left, definition, repetition)) = open.last_mut() {
        if *left == 0 {
            open.pop();
            continue;
        }
        *left -= 1;
        let (element, others) = rest
            .split_first()
            .ok_or_else(|| damaged("the schema ends too early".to_owned()))?;
        rest = others;
        names_bytes_left = names_bytes_left
            .checked_sub(path.len() + 1 + element.name.len())
            .ok_or_else(|| {
                damaged(format!(
                    "the names of columns are too long for a footer of {footer_bytes} bytes"
                ))
            })?;
        let gap = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{gap}{}", element.name);
        let levels = |levels: u8, more: bool| levels.saturating_add(u8::from(more));
        let definition = levels(*definition, element.repetition != 0);
        let repetition = levels(*repetition, element.repetition == 2);
        match element.physical {
            Some(physical) => leaves.push(Leaf {
                path,
                physical: match physical {
                    1 => Physical::Int32,
                    2 => Physical::Int64,
                    6 => Physical::ByteArray,
                    _ => Physical::Other,
                },
                meaning: (element.logical)
                    .or(element.converted.map(converted))
                    .unwrap_or(Meaning::Plain),
                is_logical: element.logical.is_some(),
                definition_levels: definition,
                repetition_levels: repetition,
            }),
            None => open.push((path, element.children, definition, repetition)),
        }
    }
    Ok(leaves)
}

fn groups(reader: &mut Reader<'_>, field: Field, groups: &mut Vec<Group>) -> Result<()> {
    reader.structs(field, |reader, number, field| {
        let group = at(groups, number);
        match field.id {
            1 => {
                reader.structs(field, |reader, number, field| {
                    at(&mut group.chunks, number).read_field(reader, field)
                })?;
            }
            3 => group.rows = reader.int(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(())
}

impl Default for Chunk {
    /// A chunk before any of its fields was read.
    fn default() -> Self {
        Self {
            codec: Codec::Uncompressed,
            values: 0,
            bytes: 0,
            data_at: 0,
            dictionary_at: None,
            encodings: Encodings::default(),
            of_data_pages: None,
        }
    }
}

impl Chunk {
    /// Reads a field of ColumnChunk, or skips it.
    fn read_field(&mut self, reader: &mut Reader<'_>, field: Field) -> Result<()> {
        match field.id {
            1 => Err(ReadError::unsupported("a column in another file")),
            3 => reader.inner(field, |reader, field| self.meta(reader, field)),
            _ => reader.skip(field),
        }
    }

    /// Reads a field of ColumnMetaData, or skips it.
    fn meta(&mut self, reader: &mut Reader<'_>, field: Field) -> Result<()> {
        match field.id {
            2 => reader.ints(field, |encoding| self.encodings.add(encoding))?,
            4 => self.codec = Codec::from_number(reader.i32(field)?),
            5 => self.values = reader.int(field)?,
            7 => self.bytes = reader.int(field)?,
            9 => self.data_at = reader.int(field)?,
            11 => self.dictionary_at = Some(reader.int(field)?),
            13 => self.count_pages(reader, field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    }

    /// Reads the encodings of data pages from PageEncodingStats, which count the pages of each kind
    /// and encoding.
    fn count_pages(&mut self, reader: &mut Reader<'_>, field: Field) -> Result<()> {
        const DICTIONARY_PAGE: i64 = 2;
        let mut counts: Vec<(i64, i64)> = Vec::new();
        reader.structs(field, |reader, number, field| {
            let (kind, encoding) = at(&mut counts, number);
            match field.id {
                1 => *kind = reader.int(field)?,
                2 => *encoding = reader.int(field)?,
                _ => reader.skip(field)?,
            }
            Ok(())
        })?;
        let mut encodings = Encodings::default();
        for (kind, encoding) in counts {
            if kind != DICTIONARY_PAGE {
                encodings.add(encoding);
            }
        }
        self.of_data_pages = Some(encodings);
        Ok(())
    }
}

fn damaged(reason: impl Into<String>) -> ReadError {
    ReadError::Metadata {
        reason: reason.into(),
    }
}

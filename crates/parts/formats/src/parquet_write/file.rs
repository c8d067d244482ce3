//! The file around the column chunks: magic, row groups, footer.

use std::io::{self, Write};

use super::column::{Bounds, Column};
use super::schema::Field;
use super::thrift::Struct;

const MAGIC: &[u8; 4] = b"PAR1";
const UNCOMPRESSED: i32 = 0;

struct Chunk {
    offset: u64,
    bytes: usize,
    dictionary_bytes: usize,
    values: usize,
    encodings: Vec<i32>,
    bounds: Option<Bounds>,
}

struct RowGroup {
    rows: usize,
    chunks: Vec<Chunk>,
}

/// Writes one Parquet file, row group by row group.
pub struct FileWriter<W> {
    out: W,
    offset: u64,
    fields: Vec<Field>,
    row_groups: Vec<RowGroup>,
    key_values: Vec<(String, String)>,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSummary {
    /// Rows.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file with these columns and file-level key-value metadata.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn new(
        mut out: W,
        fields: Vec<Field>,
        key_values: Vec<(String, String)>,
    ) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(FileWriter {
            out,
            offset: 4,
            fields,
            row_groups: Vec::new(),
            key_values,
        })
    }

    /// Appends a row group: one column for each field, all with the same number of values.
    ///
    /// # Errors
    /// Whatever `out` says.
    ///
    /// # Panics
    /// When the columns are not one for each field or differ in length, a bug of the caller.
    pub fn row_group(&mut self, columns: &[Column]) -> io::Result<()> {
        assert_eq!(
            columns.len(),
            self.fields.len(),
            "one column for each field"
        );
        let rows = columns.first().map_or(0, |column| column.values);
        assert!(
            columns.iter().all(|column| column.values == rows),
            "columns of one length"
        );
        let mut chunks = Vec::with_capacity(columns.len());
        for column in columns {
            self.out.write_all(&column.bytes)?;
            chunks.push(Chunk {
                offset: self.offset,
                bytes: column.bytes.len(),
                dictionary_bytes: column.dictionary_bytes,
                values: column.values,
                encodings: column.encodings.clone(),
                bounds: column.bounds.clone(),
            });
            self.offset += column.bytes.len() as u64;
        }
        self.row_groups.push(RowGroup { rows, chunks });
        Ok(())
    }

    /// What the bytes go to, for those who want to know how far it is.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Writes the footer and gives back the output, which the caller makes durable.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn finish(mut self) -> io::Result<(W, FileSummary)> {
        let rows = self.row_groups.iter().map(|group| group.rows as u64).sum();
        let mut footer = Vec::new();
        Struct::write(&mut footer, |file| self.describe(rows, file));
        let length = footer.len() as u32;
        footer.extend_from_slice(&length.to_le_bytes());
        footer.extend_from_slice(MAGIC);
        self.out.write_all(&footer)?;
        Ok((
            self.out,
            FileSummary {
                rows,
                bytes: self.offset + footer.len() as u64,
            },
        ))
    }

    fn describe(&self, rows: u64, file: &mut Struct<'_>) {
        const VERSION: i32 = 2;
        file.i32(1, VERSION);
        // The root element comes first, then its leaves.
        file.struct_list(2, 0..self.fields.len() + 1, |element, i| match i {
            0 => {
                element.binary(4, b"schema");
                element.i32(5, self.fields.len() as i32);
            }
            _ => self.fields[i - 1].write(element),
        });
        file.i64(3, rows as i64);
        file.struct_list(
            4,
            self.row_groups.iter().enumerate(),
            |group, (ordinal, row_group)| {
                self.describe_group(row_group, ordinal, group);
            },
        );
        if !self.key_values.is_empty() {
            file.struct_list(5, self.key_values.iter(), |pair, (key, value)| {
                pair.binary(1, key.as_bytes());
                pair.binary(2, value.as_bytes());
            });
        }
        file.binary(
            6,
            concat!("dyno version ", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        file.struct_list(7, self.fields.iter(), |order, _| order.structure(1, |_| {}));
    }

    fn describe_group(&self, row_group: &RowGroup, ordinal: usize, group: &mut Struct<'_>) {
        let bytes: usize = row_group.chunks.iter().map(|chunk| chunk.bytes).sum();
        let columns = row_group.chunks.iter().zip(&self.fields);
        group.struct_list(1, columns, |column, (chunk, field)| {
            column.i64(2, chunk.offset as i64);
            column.structure(3, |meta| chunk.describe(field, meta));
        });
        group.i64(2, bytes as i64);
        group.i64(3, row_group.rows as i64);
        group.i64(
            5,
            row_group
                .chunks
                .first()
                .map_or(0, |chunk| chunk.offset as i64),
        );
        group.i64(6, bytes as i64);
        // The ordinal is 16 bits wide and optional; a file with more row groups goes without.
        if let Ok(ordinal) = i16::try_from(ordinal) {
            group.i16(7, ordinal);
        }
    }
}

impl Chunk {
    fn describe(&self, field: &Field, meta: &mut Struct<'_>) {
        meta.i32(1, field.logical.physical() as i32);
        meta.i32_list(2, &self.encodings);
        meta.binary_list(3, &[field.name.as_bytes()]);
        meta.i32(4, UNCOMPRESSED);
        meta.i64(5, self.values as i64);
        meta.i64(6, self.bytes as i64);
        meta.i64(7, self.bytes as i64);
        meta.i64(9, self.offset as i64 + self.dictionary_bytes as i64);
        if self.dictionary_bytes > 0 {
            meta.i64(11, self.offset as i64);
        }
        if let Some(bounds) = &self.bounds {
            meta.structure(12, |statistics| {
                statistics.i64(3, 0);
                statistics.binary(5, &bounds.max);
                statistics.binary(6, &bounds.min);
                statistics.bool(7, bounds.exact);
                statistics.bool(8, bounds.exact);
            });
        }
    }
}

//! The file around column chunks that the caller encoded: magic, row groups, page index, footer.

use std::io::{self, Write};

use super::column::Column;
use super::footer::{Footer, MAGIC, PlacedChunk, PlacedGroup};
use super::page_index::PageIndex;
use super::schema::Field;

/// Writes one Parquet file of columns that the caller encoded, row group by row group.
pub struct FileWriter<W> {
    out: W,
    offset: u64,
    fields: Vec<Field>,
    groups: Vec<PlacedGroup>,
    page_index: PageIndex,
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
            offset: MAGIC.len() as u64,
            fields,
            groups: Vec::new(),
            page_index: PageIndex::default(),
            key_values,
        })
    }

    /// Appends a row group: one column for each field, all with the same number of values.
    ///
    /// # Errors
    /// Whatever `out` says.
    ///
    /// # Panics
    /// When the columns are not one for each field, differ in length, or say which rows have a
    /// value where the field is not nullable or the other way round: a bug of the caller.
    pub fn row_group(&mut self, columns: &[Column]) -> io::Result<()> {
        assert_eq!(
            columns.len(),
            self.fields.len(),
            "one column for each field"
        );
        let rows = columns.first().map_or(0, |column| column.meta.values);
        assert!(
            columns.iter().all(|column| column.meta.values == rows),
            "columns of one length"
        );
        let nullable = |(column, field): (&Column, &Field)| column.nullable() == field.nullable;
        assert!(
            columns.iter().zip(&self.fields).all(nullable),
            "nullable columns for nullable fields"
        );
        let mut chunks = Vec::with_capacity(columns.len());
        for column in columns {
            self.out.write_all(&column.bytes)?;
            let mut meta = column.meta.clone();
            meta.stored_bytes = column.bytes.len();
            let first_page = self.offset + meta.dictionary_bytes as u64;
            self.page_index.add(&column.pages, first_page);
            chunks.push(PlacedChunk {
                offset: self.offset,
                meta,
                column_index: None,
                offset_index: None,
            });
            self.offset += column.bytes.len() as u64;
        }
        self.groups.push(PlacedGroup { rows, chunks });
        Ok(())
    }

    /// What the bytes go to, for those who want to know how far it is.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Writes the page index and the footer, and gives back the output, which the caller makes
    /// durable.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn finish(mut self) -> io::Result<(W, FileSummary)> {
        let mut bytes = self.page_index.place(&mut self.groups, self.offset);
        let footer = Footer {
            fields: &self.fields,
            groups: &self.groups,
            key_values: &self.key_values,
            sorted_by: &[],
        };
        let rows = footer.rows();
        bytes.extend(footer.bytes());
        self.out.write_all(&bytes)?;
        Ok((
            self.out,
            FileSummary {
                rows,
                bytes: self.offset + bytes.len() as u64,
            },
        ))
    }
}

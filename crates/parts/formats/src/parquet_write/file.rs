//! Writes a file of column chunks that the caller has encoded, with magic, page index and footer.

use std::io::{self, Write};

use super::column::Column;
use super::footer::{Footer, MAGIC, PlacedChunk, PlacedGroup};
use super::page_index::PageIndex;
use super::schema::Field;

/// Writes one Parquet file of columns that the caller has encoded, row group by row group. After an
/// error the output is not a Parquet file, and the writer must be dropped.
pub struct FileWriter<W> {
    out: W,
    offset: u64,
    fields: Vec<Field>,
    groups: Vec<PlacedGroup>,
    page_index: PageIndex,
    key_values: Vec<(String, String)>,
}

/// The size of a finished file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSummary {
    /// Rows of all row groups together.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file with these columns and file-level key-value metadata.
    ///
    /// # Errors
    /// When `out` fails.
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
    /// When `out` fails.
    ///
    /// # Panics
    /// When the columns are not one for each field, differ in length, or say which rows have a
    /// value although the field is not nullable, or do not although it is. All are bugs of the
    /// caller.
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
        // The group is listed only when all of its columns have been written.
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

    /// The output, for callers that want to know how far it is.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Writes the page index and the footer, and returns the output, which the caller makes
    /// durable.
    ///
    /// # Errors
    /// When `out` fails, or when so many row groups make a footer that Parquet cannot count.
    pub fn finish(mut self) -> io::Result<(W, FileSummary)> {
        let mut bytes = self.page_index.place(&mut self.groups, self.offset);
        let footer = Footer {
            fields: &self.fields,
            groups: &self.groups,
            key_values: &self.key_values,
            sorted_by: &[],
        };
        let rows = footer.rows();
        bytes.extend(footer.bytes()?);
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

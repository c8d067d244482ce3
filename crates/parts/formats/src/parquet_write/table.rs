//! Writes a file of row groups, with magic, page index and footer.

use std::io::Write;
use std::sync::Arc;

use super::error::Result;
use super::file::FileSummary;
use super::footer::{Footer, MAGIC, PlacedChunk, PlacedGroup};
use super::group::RowGroup;
use super::layout::Layout;
use super::page_index::PageIndex;

/// Writes one Parquet file of row groups that [`super::RowGroupWriter`]s have encoded. After an
/// error the output is not a Parquet file, and the writer must be dropped.
pub struct TableWriter<W> {
    out: W,
    offset: u64,
    layout: Arc<Layout>,
    groups: Vec<PlacedGroup>,
    page_index: PageIndex,
}

impl<W: Write> TableWriter<W> {
    /// Begins a file by writing its magic.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(mut out: W, layout: Arc<Layout>) -> Result<TableWriter<W>> {
        out.write_all(MAGIC)?;
        Ok(TableWriter {
            out,
            offset: MAGIC.len() as u64,
            layout,
            groups: Vec::new(),
            page_index: PageIndex::default(),
        })
    }

    /// Appends a row group. One without rows is left out.
    ///
    /// # Errors
    /// When the output fails.
    ///
    /// # Panics
    /// When the row group has another number of columns, which is a bug of the caller.
    pub fn append(&mut self, group: RowGroup) -> Result<()> {
        let RowGroup { rows, chunks } = group;
        assert_eq!(
            chunks.len(),
            self.layout.columns.len(),
            "a row group of the same layout"
        );
        if rows == 0 {
            return Ok(());
        }
        let mut placed = Vec::with_capacity(chunks.len());
        let mut spare = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            self.out.write_all(&chunk.dictionary)?;
            self.out.write_all(&chunk.pages)?;
            if self.layout.page_index {
                let first_page = self.offset + chunk.dictionary.len() as u64;
                self.page_index.add(&chunk.entries, first_page);
            }
            let offset = self.offset;
            self.offset += chunk.meta.stored_bytes as u64;
            placed.push(PlacedChunk {
                offset,
                meta: chunk.meta,
                column_index: None,
                offset_index: None,
            });
            spare.push(chunk.pages);
        }
        // The pages are in the file, so their buffers serve the next row group.
        self.layout.spare.push(spare);
        self.groups.push(PlacedGroup {
            rows,
            chunks: placed,
        });
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
    /// When the output fails, or when so many row groups make a footer that Parquet cannot count.
    pub fn finish(mut self) -> Result<(W, FileSummary)> {
        let mut bytes = self.page_index.place(&mut self.groups, self.offset);
        let footer = Footer {
            fields: &self.layout.schema,
            groups: &self.groups,
            key_values: &self.layout.key_values,
            sorted_by: &self.layout.sorted_by,
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

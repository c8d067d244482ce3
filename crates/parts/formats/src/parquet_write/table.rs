//! The file around row groups: magic, chunks, page index, footer.

use std::io::Write;
use std::sync::Arc;

use super::error::Result;
use super::file::FileSummary;
use super::footer::{Footer, MAGIC, Place, PlacedChunk, PlacedGroup};
use super::group::RowGroup;
use super::layout::Layout;
use super::page_index::{column_index, offset_index};

/// Writes one Parquet file of row groups that [`super::RowGroupWriter`]s encoded.
pub struct TableWriter<W> {
    out: W,
    offset: u64,
    layout: Arc<Layout>,
    groups: Vec<PlacedGroup>,
    /// For each column chunk written so far, in the order of the file.
    indexes: Vec<ChunkIndex>,
}

struct ChunkIndex {
    column: Option<Vec<u8>>,
    offset: Vec<u8>,
}

impl<W: Write> TableWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn new(mut out: W, layout: Arc<Layout>) -> Result<TableWriter<W>> {
        out.write_all(MAGIC)?;
        Ok(TableWriter {
            out,
            offset: MAGIC.len() as u64,
            layout,
            groups: Vec::new(),
            indexes: Vec::new(),
        })
    }

    /// Appends a row group; one without rows leaves no trace.
    ///
    /// # Errors
    /// Whatever the output says.
    ///
    /// # Panics
    /// When the row group has another number of columns, a bug of the caller.
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
                self.indexes.push(ChunkIndex {
                    column: column_index(&chunk.entries),
                    offset: offset_index(&chunk.entries, first_page),
                });
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
        self.layout.spare.give(spare);
        self.groups.push(PlacedGroup {
            rows,
            chunks: placed,
        });
        Ok(())
    }

    /// What the bytes go to, for those who want to know how far it is.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Writes the page index and the footer, and gives back the output, which the caller makes durable.
    ///
    /// # Errors
    /// Whatever the output says.
    pub fn finish(mut self) -> Result<(W, FileSummary)> {
        let mut bytes = self.place_indexes();
        let footer = Footer {
            fields: &self.layout.schema,
            groups: &self.groups,
            key_values: &self.layout.key_values,
            sorted_by: &self.layout.sorted_by,
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

    /// All column indexes, then all offset indexes, as they follow the row groups.
    fn place_indexes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut place = |index: &[u8]| {
            let place = Place {
                offset: self.offset + bytes.len() as u64,
                bytes: index.len(),
            };
            bytes.extend_from_slice(index);
            place
        };
        let chunks = self.groups.iter_mut().flat_map(|group| &mut group.chunks);
        let mut chunks: Vec<_> = chunks.zip(&self.indexes).collect();
        for (chunk, index) in &mut chunks {
            chunk.column_index = index.column.as_deref().map(&mut place);
        }
        for (chunk, index) in &mut chunks {
            chunk.offset_index = Some(place(&index.offset));
        }
        bytes
    }
}

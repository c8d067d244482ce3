//! Encodes batches of rows as row groups.

use std::sync::Arc;

use super::chunk::{Chunk, ChunkWriter, Scratch};
use super::error::Result;
use super::layout::Layout;
use super::order::Order;
use crate::columns::{Values, check_batch};

/// Encodes the row groups of a file, one after the other, in memory that it uses again. Each thread
/// has its own. The bytes of a row group depend only on its rows, its batches and the layout.
pub struct RowGroupWriter {
    layout: Arc<Layout>,
    columns: Vec<ChunkWriter>,
    order: Option<Order>,
    scratch: Scratch,
    rows: usize,
}

/// An encoded row group, ready to be written.
#[derive(Debug)]
pub struct RowGroup {
    pub(super) rows: usize,
    pub(super) chunks: Vec<Chunk>,
}

impl RowGroupWriter {
    /// Makes a writer for row groups of files of this layout.
    pub fn new(layout: &Arc<Layout>) -> RowGroupWriter {
        let columns = layout.columns.iter();
        RowGroupWriter {
            layout: Arc::clone(layout),
            columns: columns
                .map(|&plan| ChunkWriter::new(plan, layout.page_version))
                .collect(),
            order: Order::new(layout),
            scratch: Scratch::default(),
            rows: 0,
        }
    }

    /// Encodes a batch of rows as a page for each column, or as several if it has over 32 Ki rows.
    /// Text must be UTF-8, which is not checked. After an error the row group has no rows.
    ///
    /// # Errors
    /// The batch is not one of this layout, or an encoding that the options request is not possible
    /// for its values; see [`super::Error`].
    pub fn append(&mut self, batch: &[Values<'_>]) -> Result<()> {
        let done = self.encode(batch);
        // The columns in front of the one that failed have the batch already, so the row group
        // cannot go on.
        if done.is_err() {
            self.clear();
        }
        done
    }

    fn encode(&mut self, batch: &[Values<'_>]) -> Result<()> {
        let fields = self.columns.iter().map(ChunkWriter::field);
        let rows = check_batch(&fields.collect::<Vec<_>>(), batch)?;
        for (column, values) in self.columns.iter_mut().zip(batch) {
            column.append(values, &mut self.scratch)?;
        }
        if let Some(order) = &mut self.order {
            order.check(batch, self.rows)?;
        }
        self.rows += rows;
        Ok(())
    }

    /// Rows in the row group so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// About how many bytes the row group has so far. Dictionaries count uncompressed.
    pub fn encoded_bytes(&self) -> usize {
        self.columns.iter().map(ChunkWriter::encoded_bytes).sum()
    }

    /// Returns the row group, and begins the next one.
    ///
    /// # Errors
    /// When a dictionary cannot be compressed or is too large for a page. The rows of the row group
    /// are lost then, and the next one begins without any.
    pub fn finish(&mut self) -> Result<RowGroup> {
        let scratch = &mut self.scratch;
        let spare = self.layout.spare.pop(self.columns.len());
        let chunks = self.columns.iter_mut().zip(spare);
        let chunks = chunks.map(|(column, spare)| column.finish(spare, scratch));
        let chunks = chunks.collect::<Result<_>>();
        let rows = self.rows;
        // Before the error is returned: the columns in front of the one that failed have given
        // their pages away, and rows appended to what is left would have columns of different
        // lengths.
        self.clear();
        Ok(RowGroup {
            rows,
            chunks: chunks?,
        })
    }

    /// The layout that was given to [`RowGroupWriter::new`].
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.columns.iter_mut().for_each(ChunkWriter::clear);
        if let Some(order) = &mut self.order {
            order.clear();
        }
    }
}

impl RowGroup {
    /// The number of rows in it.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many bytes it will have in the file.
    pub fn bytes(&self) -> usize {
        self.chunks
            .iter()
            .map(|chunk| chunk.meta.stored_bytes)
            .sum()
    }
}

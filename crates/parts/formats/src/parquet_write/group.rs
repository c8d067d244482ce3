//! Row groups: batches of rows into column chunks.

use std::sync::Arc;

use super::chunk::{Chunk, ChunkWriter, Room};
use super::error::Result;
use super::layout::Layout;
use super::order::Order;
use crate::columns::{Values, check_batch};

/// Encodes the row groups of a file, one after the other, in memory that it uses again. Each thread
/// has its own; what it makes of a row group depends on the rows and the layout only.
pub struct RowGroupWriter {
    layout: Arc<Layout>,
    columns: Vec<ChunkWriter>,
    order: Option<Order>,
    room: Room,
    rows: usize,
}

/// An encoded row group, ready to be written.
#[derive(Debug)]
pub struct RowGroup {
    pub(super) rows: usize,
    pub(super) chunks: Vec<Chunk>,
}

impl RowGroupWriter {
    /// A writer for row groups of files of this layout.
    pub fn new(layout: &Arc<Layout>) -> RowGroupWriter {
        let columns = layout.columns.iter();
        RowGroupWriter {
            layout: Arc::clone(layout),
            columns: columns
                .map(|&plan| ChunkWriter::new(plan, layout.page_version))
                .collect(),
            order: Order::new(layout),
            room: Room::default(),
            rows: 0,
        }
    }

    /// Encodes a batch of rows: a page for each column, more where it has over 32 Ki rows. Texts
    /// must be UTF-8, which is not checked. After an error the row group has no rows.
    ///
    /// # Errors
    /// What is wrong with the batch, or with an encoding that was asked for; see [`super::Error`].
    pub fn append(&mut self, batch: &[Values<'_>]) -> Result<()> {
        let done = self.encode(batch);
        if done.is_err() {
            self.clear();
        }
        done
    }

    fn encode(&mut self, batch: &[Values<'_>]) -> Result<()> {
        let fields = self.columns.iter().map(ChunkWriter::field);
        let rows = check_batch(&fields.collect::<Vec<_>>(), batch)?;
        for (column, values) in self.columns.iter_mut().zip(batch) {
            column.append(values, &mut self.room)?;
        }
        if let Some(order) = &mut self.order {
            order.check(batch, self.rows)?;
        }
        self.rows += rows;
        Ok(())
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the row group so far, nearly: dictionaries count without their compression.
    pub fn encoded_bytes(&self) -> usize {
        self.columns.iter().map(ChunkWriter::encoded_bytes).sum()
    }

    /// Ends the row group, and begins the next one.
    ///
    /// # Errors
    /// When a dictionary cannot be compressed.
    pub fn finish(&mut self) -> Result<RowGroup> {
        let room = &mut self.room;
        let spare = self.layout.spare.take(self.columns.len());
        let chunks = self.columns.iter_mut().zip(spare);
        let chunks = chunks.map(|(column, spare)| column.finish(spare, room));
        let group = RowGroup {
            rows: self.rows,
            chunks: chunks.collect::<Result<_>>()?,
        };
        self.clear();
        Ok(group)
    }

    /// The layout of the file.
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
    /// Rows in it.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes that it will have in the file.
    pub fn bytes(&self) -> usize {
        self.chunks
            .iter()
            .map(|chunk| chunk.meta.stored_bytes)
            .sum()
    }
}

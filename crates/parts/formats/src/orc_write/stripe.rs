//! A stripe, whose rows are encoded column by column and can be read without any other stripe.

use std::io::{self, Write};
use std::sync::Arc;

use super::codec::Codec;
use super::column::{Batch, Column, Segment};
use super::error::{Error, Result};
use super::layout::Layout;
use super::protobuf::{bytes, message, uint};
use super::statistics::Statistics;
use crate::columns::{Values, check_batch};

/// The number of ROW_INDEX among the kinds of streams.
const ROW_INDEX: u64 = 6;

/// Encodes rows as stripes, one after the other, on one thread.
///
/// After an error its columns may have different numbers of rows. Every later call therefore fails
/// with [`Error::Failed`].
pub struct StripeWriter {
    layout: Arc<Layout>,
    codec: Codec,
    /// Empty between two stripes, so that a writer that waits does not hold on to buffers.
    columns: Vec<Column>,
    segments: Vec<Segment>,
    rows: usize,
    failed: bool,
}

/// An encoded stripe, to be appended to a file.
pub struct Stripe {
    rows: usize,
    columns: Vec<Column>,
    /// Row indexes of the root and of each column.
    indexes: Vec<Vec<u8>>,
    footer: Vec<u8>,
}

/// Where the parts of a stripe lie.
pub(super) struct Extent {
    pub(super) index_bytes: usize,
    pub(super) data_bytes: usize,
    pub(super) footer_bytes: usize,
}

impl StripeWriter {
    /// Begins a first, empty stripe of files of this layout.
    ///
    /// # Errors
    /// When the codec cannot be set up.
    pub fn new(layout: &Arc<Layout>) -> Result<StripeWriter> {
        let options = layout.options();
        Ok(StripeWriter {
            codec: Codec::new(options.compression, options.chunk_bytes)?,
            columns: Vec::new(),
            layout: Arc::clone(layout),
            segments: Vec::new(),
            rows: 0,
            failed: false,
        })
    }

    /// Appends a batch of rows.
    ///
    /// # Errors
    /// When the columns are not a batch of this layout, when a code is not in its dictionary, when
    /// a value is too long or too large for its type, when a column changes between codes and text
    /// or between dictionaries within the stripe, and when a codec fails.
    pub fn append(&mut self, columns: &[Values<'_>]) -> Result<()> {
        self.check_sound()?;
        let rows = check_batch(self.layout.fields(), columns)?;
        if rows == 0 {
            return Ok(());
        }
        self.begin();
        self.cut(rows);
        // Set until all columns have the batch, because the first of them keep it when a later one
        // refuses its values.
        self.failed = true;
        let mut batch = Batch {
            segments: &self.segments,
            codec: &mut self.codec,
        };
        for (column, values) in self.columns.iter_mut().zip(columns) {
            column.append(values, &mut batch)?;
        }
        self.failed = false;
        self.rows += rows;
        Ok(())
    }

    /// Takes columns for a new stripe, now that those of earlier ones may be free again.
    fn begin(&mut self) {
        if self.columns.is_empty() {
            self.columns = self.layout.take_columns();
        }
    }

    /// Cuts a batch where index strides end.
    fn cut(&mut self, rows: usize) {
        let stride = self.layout.options().stride_rows;
        self.segments.clear();
        let mut begin = 0;
        while begin < rows {
            let left = stride - (self.rows + begin) % stride;
            let end = rows.min(begin + left);
            self.segments.push(Segment {
                rows: begin..end,
                ends: end - begin == left,
            });
            begin = end;
        }
    }

    fn check_sound(&self) -> Result<()> {
        if self.failed {
            return Err(Error::Failed { rows: self.rows });
        }
        Ok(())
    }

    /// Rows in the stripe that is being encoded.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// About how many bytes the stripe will have. What waits for the codec counts as it is.
    pub fn encoded_bytes(&self) -> usize {
        self.columns.iter().map(Column::encoded_bytes).sum()
    }

    /// Ends the stripe and begins an empty one. A stripe of no rows is allowed; a file leaves it
    /// out.
    ///
    /// # Errors
    /// When a codec fails, and when a batch failed before.
    pub fn finish(&mut self) -> Result<Stripe> {
        self.check_sound()?;
        self.begin();
        self.failed = true;
        for column in &mut self.columns {
            column.finish(&mut self.codec)?;
        }
        let mut indexes = vec![self.codec.section(self.root_index())?];
        for column in &self.columns {
            indexes.push(self.codec.section(column.row_index().to_vec())?);
        }
        let footer = footer(&indexes, &self.columns);
        let footer = self.codec.section(footer)?;
        self.failed = false;
        Ok(Stripe {
            rows: std::mem::take(&mut self.rows),
            columns: std::mem::take(&mut self.columns),
            indexes,
            footer,
        })
    }

    /// The root has no streams, so its entries have statistics only.
    fn root_index(&self) -> Vec<u8> {
        let mut index = Vec::new();
        let stride = self.layout.options().stride_rows;
        for begin in (0..self.rows).step_by(stride) {
            let rows = stride.min(self.rows - begin) as u64;
            message(&mut index, 1, |entry| {
                message(entry, 2, |out| Statistics::rows(rows).write(out));
            });
        }
        index
    }
}

/// The directory of the streams and the encoding of each column.
fn footer(indexes: &[Vec<u8>], columns: &[Column]) -> Vec<u8> {
    let mut footer = Vec::new();
    let mut stream = |kind: u64, column: usize, length: usize| {
        message(&mut footer, 1, |out| {
            uint(out, 1, kind);
            uint(out, 2, column as u64);
            uint(out, 3, length as u64);
        });
    };
    for (column, index) in indexes.iter().enumerate() {
        stream(ROW_INDEX, column, index.len());
    }
    for (column, encoded) in columns.iter().enumerate() {
        for (kind, bytes) in encoded.streams() {
            stream(kind, column + 1, bytes.bytes().len());
        }
    }
    // The root is encoded directly.
    message(&mut footer, 2, |out| uint(out, 1, 0));
    for column in columns {
        let encoding = column.encoding();
        message(&mut footer, 2, |out| {
            uint(out, 1, encoding.kind);
            if let Some(words) = encoding.words {
                uint(out, 2, words as u64);
            }
        });
    }
    bytes(&mut footer, 3, b"UTC");
    footer
}

impl Stripe {
    /// The number of rows in it.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many bytes it takes in the file.
    pub fn bytes(&self) -> usize {
        let extent = self.extent();
        extent.index_bytes + extent.data_bytes + extent.footer_bytes
    }

    pub(super) fn extent(&self) -> Extent {
        let columns = self.columns.iter();
        Extent {
            index_bytes: self.indexes.iter().map(Vec::len).sum(),
            data_bytes: columns
                .flat_map(Column::streams)
                .map(|(_, stream)| stream.bytes().len())
                .sum(),
            footer_bytes: self.footer.len(),
        }
    }

    /// Statistics of the root and of each column.
    pub(super) fn statistics(&self) -> Vec<Statistics> {
        let root = Statistics::rows(self.rows as u64);
        let columns = self.columns.iter();
        std::iter::once(root)
            .chain(columns.map(|column| column.statistics().clone()))
            .collect()
    }

    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn write<W: Write>(&self, out: &mut W) -> io::Result<()> {
        for index in &self.indexes {
            out.write_all(index)?;
        }
        for (_, stream) in self.columns.iter().flat_map(Column::streams) {
            out.write_all(stream.bytes())?;
        }
        out.write_all(&self.footer)
    }

    pub(super) fn into_columns(self) -> Vec<Column> {
        self.columns
    }
}

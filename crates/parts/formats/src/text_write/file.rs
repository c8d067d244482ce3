//! Writes a file of blocks, behind a header line if there is one.

use std::io::Write;
use std::sync::Arc;

use super::block::Block;
use super::careful::append_text;
use super::error::{Result, TextError};
use super::layout::{Column, Dialect, Layout};

/// Writes one file, block by block, in the order in which they come. After an error the last line
/// of the output may be incomplete.
pub struct FileWriter<W> {
    out: W,
    summary: FileSummary,
}

/// The size of a finished file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileSummary {
    /// Rows, the header not counted.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file, with the header if the layout has one.
    ///
    /// # Errors
    /// [`TextError::Io`], and [`TextError::Unquotable`] for a column's name.
    pub fn new(out: W, layout: Arc<Layout>) -> Result<FileWriter<W>> {
        let mut writer = FileWriter {
            out,
            summary: FileSummary::default(),
        };
        if layout.options.header {
            writer.write(&header(&layout)?)?;
        }
        Ok(writer)
    }

    /// Appends the lines of a block.
    ///
    /// # Errors
    /// [`TextError::Io`] when the output fails.
    pub fn append(&mut self, block: &Block) -> Result<()> {
        self.write(&block.bytes)?;
        self.summary.rows += block.rows;
        Ok(())
    }

    /// The output, for callers that want to know how far it is.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Returns the output, which the caller makes durable.
    ///
    /// # Errors
    /// None today. Writers of other formats, which write a footer here, have the same signature.
    pub fn finish(self) -> Result<(W, FileSummary)> {
        Ok((self.out, self.summary))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.summary.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// A line of the columns' names, which are quoted only where they must be.
fn header(layout: &Layout) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    let last = layout.columns.len() - 1;
    for (at, column) in layout.columns.iter().enumerate() {
        let field = column.field;
        append_text(
            field.name.as_bytes(),
            &Column::new(field),
            layout,
            &mut line,
        )
        .map_err(|byte| TextError::Unquotable {
            name: field.name,
            row: 0,
            byte: char::from(byte),
        })?;
        if at < last || layout.options.dialect == Dialect::Tbl {
            line.push(layout.separator());
        }
    }
    line.push(b'\n');
    Ok(line)
}

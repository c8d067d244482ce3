//! The file around the blocks: a header line, then lines.

use std::io::Write;
use std::sync::Arc;

use super::block::Block;
use super::careful::append_text;
use super::error::{Result, TextError};
use super::layout::{Column, Dialect, Layout};

/// Writes one file, block by block, in the order in which they come.
pub struct FileWriter<W> {
    out: W,
    summary: FileSummary,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileSummary {
    /// Rows, the header not counted.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file; writes the header where the layout has one.
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

    /// Appends a block.
    ///
    /// # Errors
    /// [`TextError::Io`].
    pub fn append(&mut self, block: &Block) -> Result<()> {
        self.write(&block.bytes)?;
        self.summary.rows += block.rows;
        Ok(())
    }

    /// What the bytes go to, for those who want to know how far it is.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Gives back the output, which the caller makes durable.
    ///
    /// # Errors
    /// None today; like those of other formats, which write a footer here.
    pub fn finish(self) -> Result<(W, FileSummary)> {
        Ok((self.out, self.summary))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.summary.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// The names, quoted only where they must be.
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

//! CSV and TBL through our own formatter.

use std::path::Path;
use std::sync::Arc;

use dyno_formats::text_write::{
    Block, BlockWriter, Column, FileWriter, Layout, Options, Quote, TextError,
};
use dyno_tpch::{Batch, Kind, Scale, Table, TextPool};

use super::{Append, Encode, Format};
use crate::columns::Columns;
use crate::error::Error;
use crate::fields;
use crate::job::{self, Mode};
use crate::place::{Out, unwrapped};

/// A table as text.
pub(crate) struct Text {
    pub(crate) table: Table,
    mode: Mode,
    scale: Scale,
    layout: Arc<Layout>,
}

impl Text {
    pub(crate) fn new(
        table: Table,
        format: job::Format,
        mode: Mode,
        scale: Scale,
    ) -> Result<Text, Error> {
        let options = match format {
            job::Format::Csv => Options::csv(),
            _ => Options::tbl(),
        };
        let kinds = table.columns().iter().map(|column| column.kind);
        let columns = fields::of(table).into_iter().zip(kinds);
        let columns = columns.map(|(field, kind)| {
            Column::new(field)
                .whole(kind == Kind::WholeDecimal)
                .quote(quote(field.name))
        });
        let layout = Layout::new(columns.collect(), options).map_err(|e| refused(table, e))?;
        Ok(Text {
            table,
            mode,
            scale,
            layout: Arc::new(layout),
        })
    }
}

/// Comments and addresses have commas in them, so all of them are quoted, as other generators do it.
fn quote(name: &str) -> Quote {
    if name.ends_with("_comment") || name.ends_with("_address") {
        Quote::Always
    } else {
        Quote::WhenNeeded
    }
}

fn refused(table: Table, error: TextError) -> Error {
    match error {
        TextError::Io(error) => unwrapped(Path::new(table.name()), error),
        error => Error::format(table, error),
    }
}

/// Lines, made on one thread.
pub(crate) struct TextEncoder {
    table: Table,
    columns: Columns,
    lines: BlockWriter,
}

impl Format for Text {
    type Encoder = TextEncoder;
    type File = TextFile;

    fn encoder(&self) -> Result<TextEncoder, Error> {
        Ok(TextEncoder {
            table: self.table,
            columns: Columns::new(self.mode, &self.scale),
            lines: BlockWriter::new(&self.layout),
        })
    }

    fn file(&self, out: Out) -> Result<TextFile, Error> {
        let file =
            FileWriter::new(out, Arc::clone(&self.layout)).map_err(|e| refused(self.table, e))?;
        Ok(TextFile {
            table: self.table,
            file,
        })
    }
}

impl Encode for TextEncoder {
    type Piece = Block;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Error> {
        self.columns
            .of(batch, pool, |columns| self.lines.append(columns))?
            .map_err(|e| refused(self.table, e))
    }

    fn finish(&mut self) -> Result<Block, Error> {
        Ok(self.lines.finish())
    }
}

/// A file of lines.
pub(crate) struct TextFile {
    table: Table,
    file: FileWriter<Out>,
}

impl Append for TextFile {
    type Piece = Block;

    fn append(&mut self, piece: Block) -> Result<u64, Error> {
        self.file
            .append(&piece)
            .map_err(|e| refused(self.table, e))?;
        Ok(piece.bytes.len() as u64)
    }

    fn finish(self) -> Result<Out, Error> {
        let (out, _) = self.file.finish().map_err(|e| refused(self.table, e))?;
        Ok(out)
    }
}

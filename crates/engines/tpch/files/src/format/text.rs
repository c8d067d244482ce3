//! Writes CSV and TBL by our own formatter.

use std::sync::Arc;

use dyno_formats::text_write::{
    Block, BlockWriter, Column, FileWriter, Layout, Options, Quote, TextError,
};
use dyno_tpch::{Batch, Kind, Table, TextPool};

use super::ours::{Columned, Ours};
use super::{Append, Columns, Encode, Format};
use crate::columns::{Own, OwnColumns};
use crate::error::{Error, Refused};
use crate::fields;
use crate::options;
use crate::target::Out;

/// The CSV or TBL format for one table.
pub(crate) type Text = Ours<Layout, Own>;

impl Text {
    pub(crate) fn new(table: Table, format: options::Format, source: Own) -> Result<Text, Error> {
        let options = match format {
            options::Format::Csv => Options::csv(),
            _ => Options::tbl(),
        };
        let kinds = table.columns().iter().map(|column| column.kind);
        let columns = fields::table_fields(table).into_iter().zip(kinds);
        let columns = columns.map(|(field, kind)| {
            Column::new(field)
                .whole(kind == Kind::WholeDecimal)
                .quote(quote(field.name))
        });
        let layout =
            Layout::new(columns.collect(), options).map_err(|e| Error::format(table, e))?;
        Ok(Ours::with(layout, source))
    }
}

/// Which values of a column are quoted. Comments and addresses have commas in them, so all of them
/// are, as other generators do it.
fn quote(name: &str) -> Quote {
    if name.ends_with("_comment") || name.ends_with("_address") {
        Quote::Always
    } else {
        Quote::WhenNeeded
    }
}

impl From<TextError> for Refused {
    fn from(error: TextError) -> Refused {
        match error {
            TextError::Io(error) => Refused::Output(error),
            error => Refused::Reason(error.to_string()),
        }
    }
}

impl Format for Text {
    type Encoder = Columned<BlockWriter, OwnColumns>;
    type File = FileWriter<Out>;

    fn encoder(&self) -> Result<Self::Encoder, Refused> {
        Ok(self.encoder_of(BlockWriter::new(&self.layout)))
    }

    fn file(&self, out: Out) -> Result<Self::File, Refused> {
        Ok(FileWriter::new(out, Arc::clone(&self.layout))?)
    }
}

impl Encode for Columned<BlockWriter, OwnColumns> {
    type Piece = Block;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Refused> {
        let Columned { columns, writer } = self;
        Ok(columns.with_columns(batch, pool, |columns| writer.append(columns))??)
    }

    fn finish(&mut self) -> Result<Block, Refused> {
        Ok(self.writer.finish())
    }
}

impl Append for FileWriter<Out> {
    type Piece = Block;

    fn append(&mut self, piece: Block) -> Result<u64, Refused> {
        FileWriter::append(self, &piece)?;
        Ok(piece.bytes.len() as u64)
    }

    fn finish(self) -> Result<Out, Refused> {
        Ok(FileWriter::finish(self)?.0)
    }
}

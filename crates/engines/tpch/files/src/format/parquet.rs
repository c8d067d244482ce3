//! Writes Parquet by our own page writer.

use std::sync::Arc;

use dyno_formats::parquet_write::{
    ColumnOptions, Compression, Error as ParquetError, Layout, Options, PageVersion, RowGroup,
    RowGroupWriter, TableWriter,
};
use dyno_tpch::{Batch, Table, TextPool};

use super::ours::{Columned, Ours};
use super::{Append, Columns, Encode, Format};
use crate::columns::{Own, OwnColumns};
use crate::error::{Error, Refused};
use crate::fields;
use crate::options;
use crate::target::Out;

/// The Parquet format for one table.
pub(crate) type Parquet = Ours<Layout, Own>;

impl Parquet {
    /// The files of a table. Those `for_iceberg` number the columns, and have encodings that its
    /// readers know.
    pub(crate) fn new(
        table: Table,
        chosen: &options::Layout,
        for_iceberg: bool,
        source: Own,
    ) -> Result<Parquet, Error> {
        let options = Options {
            field_ids: for_iceberg,
            plain_text: for_iceberg,
            ..options(table, chosen)?
        };
        let layout = Layout::new(&fields::table_fields(table), options)
            .map_err(|e| Error::format(table, e))?;
        Ok(Ours::with(layout, source))
    }
}

fn options(table: Table, chosen: &options::Layout) -> Result<Options, Error> {
    let compression = match chosen.compression {
        options::Compression::None => Compression::None,
        options::Compression::Snappy => Compression::Snappy,
        options::Compression::Zstd(level) => Compression::Zstd(level),
        options::Compression::Lz4 => Compression::Lz4Raw,
        options::Compression::Zlib => return Err(chosen.no_zlib()),
    };
    let mut columns = Vec::new();
    for (name, choice) in &chosen.columns {
        // Options may name columns of any table of the job, and each table takes its own.
        if table.columns().iter().any(|column| column.name == name) {
            let choice: ColumnOptions = choice.parse().map_err(|e| Error::format(table, e))?;
            columns.push((name.clone(), choice));
        }
    }
    let sorted_by = fields::sorted_by(table).iter();
    Ok(Options {
        compression,
        page_version: match chosen.page_version {
            2 => PageVersion::V2,
            _ => PageVersion::V1,
        },
        columns,
        sorted_by: sorted_by.map(|&name| name.to_owned()).collect(),
        ..Options::default()
    })
}

impl From<ParquetError> for Refused {
    fn from(error: ParquetError) -> Refused {
        match error {
            ParquetError::Io(error) => Refused::Output(error),
            error => Refused::Reason(error.to_string()),
        }
    }
}

impl Format for Parquet {
    type Encoder = Columned<RowGroupWriter, OwnColumns>;
    type File = TableWriter<Out>;

    fn encoder(&self) -> Result<Self::Encoder, Refused> {
        Ok(self.encoder_of(RowGroupWriter::new(&self.layout)))
    }

    fn file(&self, out: Out) -> Result<Self::File, Refused> {
        Ok(TableWriter::new(out, Arc::clone(&self.layout))?)
    }
}

impl Encode for Columned<RowGroupWriter, OwnColumns> {
    type Piece = RowGroup;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Refused> {
        let Columned { columns, writer } = self;
        Ok(columns.with_columns(batch, pool, |columns| writer.append(columns))??)
    }

    fn finish(&mut self) -> Result<RowGroup, Refused> {
        Ok(self.writer.finish()?)
    }
}

impl Append for TableWriter<Out> {
    type Piece = RowGroup;

    fn append(&mut self, piece: RowGroup) -> Result<u64, Refused> {
        let bytes = piece.bytes() as u64;
        TableWriter::append(self, piece)?;
        Ok(bytes)
    }

    fn finish(self) -> Result<Out, Refused> {
        Ok(TableWriter::finish(self)?.0)
    }
}

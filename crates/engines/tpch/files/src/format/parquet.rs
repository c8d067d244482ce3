//! Parquet through our own page writer.

use std::path::Path;
use std::sync::Arc;

use dyno_formats::parquet_write::{
    ColumnOptions, Compression, Error as ParquetError, Layout, Options, PageVersion, RowGroup,
    RowGroupWriter, TableWriter,
};
use dyno_tpch::{Batch, Scale, Table, TextPool};

use super::{Append, Encode, Format};
use crate::columns::Columns;
use crate::error::Error;
use crate::fields;
use crate::job::{self, Mode};
use crate::place::{Out, unwrapped};

/// A table as Parquet.
pub(crate) struct Parquet {
    table: Table,
    mode: Mode,
    scale: Scale,
    layout: Arc<Layout>,
}

impl Parquet {
    pub(crate) fn new(
        table: Table,
        chosen: &job::Layout,
        mode: Mode,
        scale: Scale,
    ) -> Result<Parquet, Error> {
        let options = options(table, chosen)?;
        let layout =
            Layout::new(&fields::of(table), options).map_err(|e| Error::format(table, e))?;
        Ok(Parquet {
            table,
            mode,
            scale,
            layout: Arc::new(layout),
        })
    }
}

fn options(table: Table, chosen: &job::Layout) -> Result<Options, Error> {
    let compression = match chosen.compression {
        job::Compression::None => Compression::None,
        job::Compression::Snappy => Compression::Snappy,
        job::Compression::Zstd(level) => Compression::Zstd(level),
        job::Compression::Lz4 => Compression::Lz4Raw,
        job::Compression::Zlib => return Err(chosen.no_zlib()),
    };
    let mut columns = Vec::new();
    for (name, choice) in &chosen.columns {
        // Options name columns of any table; each table takes its own.
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

fn refused(table: Table, error: ParquetError) -> Error {
    match error {
        ParquetError::Io(error) => unwrapped(Path::new(table.name()), error),
        error => Error::format(table, error),
    }
}

/// Row groups, made on one thread.
pub(crate) struct ParquetEncoder {
    table: Table,
    columns: Columns,
    group: RowGroupWriter,
}

/// A file of row groups.
pub(crate) struct ParquetFile {
    table: Table,
    file: TableWriter<Out>,
}

impl Format for Parquet {
    type Encoder = ParquetEncoder;
    type File = ParquetFile;

    fn encoder(&self) -> Result<ParquetEncoder, Error> {
        Ok(ParquetEncoder {
            table: self.table,
            columns: Columns::new(self.mode, &self.scale),
            group: RowGroupWriter::new(&self.layout),
        })
    }

    fn file(&self, out: Out) -> Result<ParquetFile, Error> {
        let file =
            TableWriter::new(out, Arc::clone(&self.layout)).map_err(|e| refused(self.table, e))?;
        Ok(ParquetFile {
            table: self.table,
            file,
        })
    }
}

impl Encode for ParquetEncoder {
    type Piece = RowGroup;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Error> {
        self.columns
            .of(batch, pool, |columns| self.group.append(columns))?
            .map_err(|e| refused(self.table, e))
    }

    fn finish(&mut self) -> Result<RowGroup, Error> {
        self.group.finish().map_err(|e| refused(self.table, e))
    }
}

impl Append for ParquetFile {
    type Piece = RowGroup;

    fn append(&mut self, piece: RowGroup) -> Result<u64, Error> {
        let bytes = piece.bytes() as u64;
        self.file
            .append(piece)
            .map_err(|e| refused(self.table, e))?;
        Ok(bytes)
    }

    fn finish(self) -> Result<Out, Error> {
        let (out, _) = self.file.finish().map_err(|e| refused(self.table, e))?;
        Ok(out)
    }
}

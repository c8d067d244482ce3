//! CSV by arrow-rs. It prints `l_quantity` with point and digits, which dbgen and our own formatter leave
//! out, and quotes only what it must.

use std::io::Write;
use std::path::Path;

use arrow::error::ArrowError;
use arrow_csv::WriterBuilder;
use dyno_tpch::{Batch, Table, TextPool};
use dyno_tpch_arrow::record_batch;

use crate::error::Error;
use crate::format::{Append, Encode, Format};
use crate::place::{Out, unwrapped};

/// A table as CSV by arrow-rs.
pub(crate) struct ArrowCsv {
    pub(crate) table: Table,
}

/// Lines under way.
pub(crate) struct LineEncoder {
    table: Table,
    lines: Vec<u8>,
}

/// A file of lines that others made.
pub(crate) struct LineFile {
    table: Table,
    out: Out,
}

impl Format for ArrowCsv {
    type Encoder = LineEncoder;
    type File = LineFile;

    fn encoder(&self) -> Result<LineEncoder, Error> {
        Ok(LineEncoder {
            table: self.table,
            lines: Vec::new(),
        })
    }

    fn file(&self, out: Out) -> Result<LineFile, Error> {
        let columns = self.table.columns().iter().map(|column| column.name);
        let header = columns.collect::<Vec<_>>().join(",") + "\n";
        LineFile::begin(self.table, out, header.as_bytes())
    }
}

impl LineFile {
    /// A file with these bytes at its head.
    pub(super) fn begin(table: Table, mut out: Out, header: &[u8]) -> Result<LineFile, Error> {
        out.write_all(header)
            .map_err(|e| unwrapped(Path::new(table.name()), e))?;
        Ok(LineFile { table, out })
    }
}

impl Encode for LineEncoder {
    type Piece = Vec<u8>;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Error> {
        let refused = |e: ArrowError| Error::format(self.table, e);
        let batch = record_batch(batch, pool).map_err(refused)?;
        // The header belongs to the file; pieces have none.
        let mut writer = WriterBuilder::new()
            .with_header(false)
            .build(&mut self.lines);
        writer.write(&batch).map_err(refused)
    }

    fn finish(&mut self) -> Result<Vec<u8>, Error> {
        Ok(std::mem::take(&mut self.lines))
    }
}

impl Append for LineFile {
    type Piece = Vec<u8>;

    fn append(&mut self, piece: Vec<u8>) -> Result<u64, Error> {
        self.out
            .write_all(&piece)
            .map_err(|e| unwrapped(Path::new(self.table.name()), e))?;
        Ok(piece.len() as u64)
    }

    fn finish(self) -> Result<Out, Error> {
        Ok(self.out)
    }
}

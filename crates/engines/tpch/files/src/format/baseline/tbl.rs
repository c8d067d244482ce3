//! TBL value by value, by the obvious writer that the fast one is tested against: no library prints
//! what dbgen prints.

use dyno_tpch::{Batch, Table, TextPool, tbl};

use super::csv::LineFile;
use crate::error::Error;
use crate::format::{Encode, Format};
use crate::place::Out;

/// A table as dbgen's text.
pub(crate) struct PlainTbl {
    pub(crate) table: Table,
}

/// Lines under way.
#[derive(Default)]
pub(crate) struct TblEncoder {
    lines: Vec<u8>,
}

impl Format for PlainTbl {
    type Encoder = TblEncoder;
    type File = LineFile;

    fn encoder(&self) -> Result<TblEncoder, Error> {
        Ok(TblEncoder::default())
    }

    fn file(&self, out: Out) -> Result<LineFile, Error> {
        LineFile::begin(self.table, out, b"")
    }
}

impl Encode for TblEncoder {
    type Piece = Vec<u8>;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Error> {
        tbl::append(batch, pool, &mut self.lines);
        Ok(())
    }

    fn finish(&mut self) -> Result<Vec<u8>, Error> {
        Ok(std::mem::take(&mut self.lines))
    }
}

//! TBL value by value, by the obvious writer that the fast one is tested against: no library prints
//! what dbgen prints.

use std::io::Write;

use dyno_tpch::{Batch, TextPool, tbl};

use crate::error::Refused;
use crate::format::{Append, Encode, Format};
use crate::place::Out;

/// A table as dbgen's text.
pub(crate) struct PlainTbl;

/// Lines under way.
#[derive(Default)]
pub(crate) struct TblEncoder {
    lines: Vec<u8>,
}

impl Format for PlainTbl {
    type Encoder = TblEncoder;
    type File = Out;

    fn encoder(&self) -> Result<TblEncoder, Refused> {
        Ok(TblEncoder::default())
    }

    fn file(&self, out: Out) -> Result<Out, Refused> {
        Ok(out)
    }
}

impl Encode for TblEncoder {
    type Piece = Vec<u8>;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Refused> {
        tbl::append(batch, pool, &mut self.lines);
        Ok(())
    }

    fn finish(&mut self) -> Result<Vec<u8>, Refused> {
        Ok(std::mem::take(&mut self.lines))
    }
}

/// Lines need nothing around them.
impl Append for Out {
    type Piece = Vec<u8>;

    fn append(&mut self, piece: Vec<u8>) -> Result<u64, Refused> {
        self.write_all(&piece)?;
        Ok(piece.len() as u64)
    }

    fn finish(self) -> Result<Out, Refused> {
        Ok(self)
    }
}

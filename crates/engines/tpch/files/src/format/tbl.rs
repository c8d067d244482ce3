//! Writes TBL value by value, by the obvious writer that the fast one is tested against, because no
//! library prints what dbgen prints.

use std::io::Write;

use dyno_tpch::{Batch, TextPool, tbl};

use crate::error::Refused;
use crate::format::{Append, Encode, Format};
use crate::target::Out;

/// The format of dbgen's text, in the mode `baseline`.
pub(crate) struct PlainTbl;

/// The lines of the current piece.
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

/// Lines are written as they are, because a file of text has nothing around them.
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

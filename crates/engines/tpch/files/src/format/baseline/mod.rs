//! The ordinary way: rows into Arrow arrays, value by value, and those into the library's own writers.

mod csv;
mod parquet;
mod tbl;

use std::io::Write;

pub(crate) use csv::ArrowCsv;
pub(crate) use parquet::ArrowParquet;
pub(crate) use tbl::PlainTbl;

use super::Append;
use crate::error::Refused;
use crate::place::Out;

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

//! Writes CSV by arrow-rs. It prints `l_quantity` with a point and digits, which dbgen and our own
//! formatter leave out, and quotes only what it must.

use std::io::Write;

use arrow::error::ArrowError;
use arrow_csv::WriterBuilder;
use dyno_tpch::{Batch, Table, TextPool};
use dyno_tpch_arrow::record_batch;
use dyno_tpch_files::format::{Encode, Format, Out, Refused};

/// The CSV format of arrow-rs for one table.
pub(crate) struct ArrowCsv {
    pub(crate) table: Table,
}

/// The lines of the current piece.
#[derive(Default)]
pub(crate) struct LineEncoder {
    lines: Vec<u8>,
}

impl Format for ArrowCsv {
    type Encoder = LineEncoder;
    type File = Out;

    fn encoder(&self) -> Result<LineEncoder, Refused> {
        Ok(LineEncoder::default())
    }

    fn file(&self, mut out: Out) -> Result<Out, Refused> {
        let columns = self.table.columns().iter().map(|column| column.name);
        let header = columns.collect::<Vec<_>>().join(",") + "\n";
        out.write_all(header.as_bytes())?;
        Ok(out)
    }
}

impl Encode for LineEncoder {
    type Piece = Vec<u8>;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Refused> {
        let refused = |error: ArrowError| Refused::Reason(error.to_string());
        let batch = record_batch(batch, pool).map_err(refused)?;
        // The header belongs to the file; pieces have none.
        let mut writer = WriterBuilder::new()
            .with_header(false)
            .build(&mut self.lines);
        writer.write(&batch).map_err(refused)
    }

    fn finish(&mut self) -> Result<Vec<u8>, Refused> {
        Ok(std::mem::take(&mut self.lines))
    }
}

//! ORC through our own stripe writer.

use std::path::Path;
use std::sync::Arc;

use dyno_formats::orc_write::{
    Compression, Error as OrcError, FileWriter, Layout, Options, Stripe, StripeWriter,
};
use dyno_tpch::{Batch, Scale, Table, TextPool};

use super::{Append, Encode, Format};
use crate::columns::Columns;
use crate::error::Error;
use crate::fields;
use crate::job::{self, Mode};
use crate::place::{Out, unwrapped};

/// The level of zlib that its users mostly have.
const ZLIB_LEVEL: u32 = 6;

/// A table as ORC.
pub(crate) struct Orc {
    table: Table,
    mode: Mode,
    scale: Scale,
    layout: Arc<Layout>,
}

impl Orc {
    pub(crate) fn new(
        table: Table,
        chosen: &job::Layout,
        mode: Mode,
        scale: Scale,
    ) -> Result<Orc, Error> {
        let options = Options {
            compression: match chosen.compression {
                job::Compression::None => Compression::None,
                job::Compression::Snappy => Compression::Snappy,
                job::Compression::Zstd(level) => Compression::Zstd(level),
                job::Compression::Lz4 => Compression::Lz4,
                job::Compression::Zlib => Compression::Zlib(ZLIB_LEVEL),
            },
            // What recurs comes as codes there; the rest need not be searched for repetitions.
            find_dictionaries: mode != Mode::TrueZeroCopy,
            ..Options::default()
        };
        let layout =
            Layout::new(&fields::of(table), options).map_err(|e| Error::format(table, e))?;
        Ok(Orc {
            table,
            mode,
            scale,
            layout: Arc::new(layout),
        })
    }
}

fn refused(table: Table, error: OrcError) -> Error {
    match error {
        OrcError::Io(error) => unwrapped(Path::new(table.name()), error),
        error => Error::format(table, error),
    }
}

/// Stripes, made on one thread.
pub(crate) struct OrcEncoder {
    table: Table,
    columns: Columns,
    stripe: StripeWriter,
}

/// A file of stripes.
pub(crate) struct OrcFile {
    table: Table,
    file: FileWriter<Out>,
}

impl Format for Orc {
    type Encoder = OrcEncoder;
    type File = OrcFile;

    fn encoder(&self) -> Result<OrcEncoder, Error> {
        Ok(OrcEncoder {
            table: self.table,
            columns: Columns::new(self.mode, &self.scale),
            stripe: StripeWriter::new(&self.layout).map_err(|e| refused(self.table, e))?,
        })
    }

    fn file(&self, out: Out) -> Result<OrcFile, Error> {
        let file =
            FileWriter::new(out, Arc::clone(&self.layout)).map_err(|e| refused(self.table, e))?;
        Ok(OrcFile {
            table: self.table,
            file,
        })
    }
}

impl Encode for OrcEncoder {
    type Piece = Stripe;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Error> {
        self.columns
            .of(batch, pool, |columns| self.stripe.append(columns))?
            .map_err(|e| refused(self.table, e))
    }

    fn finish(&mut self) -> Result<Stripe, Error> {
        self.stripe.finish().map_err(|e| refused(self.table, e))
    }
}

impl Append for OrcFile {
    type Piece = Stripe;

    fn append(&mut self, piece: Stripe) -> Result<u64, Error> {
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

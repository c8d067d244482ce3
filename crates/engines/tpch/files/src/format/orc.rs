//! ORC through our own stripe writer.

use std::sync::Arc;

use dyno_formats::orc_write::{
    Compression, Error as OrcError, FileWriter, Layout, Options, Stripe, StripeWriter,
};
use dyno_tpch::{Batch, Scale, Table, TextPool};

use super::ours::{Columned, Ours};
use super::{Append, Encode, Format};
use crate::error::{Error, Refused};
use crate::fields;
use crate::job::{self, Mode};
use crate::place::Out;

/// The level of zlib that its users mostly have.
const ZLIB_LEVEL: u32 = 6;

/// A table as ORC.
pub(crate) type Orc = Ours<Layout>;

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
        Ok(Ours::with(layout, mode, scale))
    }
}

impl From<OrcError> for Refused {
    fn from(error: OrcError) -> Refused {
        match error {
            OrcError::Io(error) => Refused::Output(error),
            error => Refused::Reason(error.to_string()),
        }
    }
}

impl Format for Orc {
    type Encoder = Columned<StripeWriter>;
    type File = FileWriter<Out>;

    fn encoder(&self) -> Result<Self::Encoder, Refused> {
        Ok(self.encoder_of(StripeWriter::new(&self.layout)?))
    }

    fn file(&self, out: Out) -> Result<Self::File, Refused> {
        Ok(FileWriter::new(out, Arc::clone(&self.layout))?)
    }
}

impl Encode for Columned<StripeWriter> {
    type Piece = Stripe;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Refused> {
        let Columned { columns, writer } = self;
        Ok(columns.of(batch, pool, |columns| writer.append(columns))??)
    }

    fn finish(&mut self) -> Result<Stripe, Refused> {
        Ok(self.writer.finish()?)
    }
}

impl Append for FileWriter<Out> {
    type Piece = Stripe;

    fn append(&mut self, piece: Stripe) -> Result<u64, Refused> {
        let bytes = piece.bytes() as u64;
        FileWriter::append(self, piece)?;
        Ok(bytes)
    }

    fn finish(self) -> Result<Out, Refused> {
        Ok(FileWriter::finish(self)?.0)
    }
}

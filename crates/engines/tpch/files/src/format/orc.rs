//! Writes ORC by our own stripe writer.

use std::sync::Arc;

use dyno_formats::orc_write::{
    Compression, Error as OrcError, FileWriter, Layout, Options, Stripe, StripeWriter,
};
use dyno_tpch::{Batch, Table, TextPool};

use super::ours::{Columned, Ours};
use super::{Append, Columns, Encode, Format, Source};
use crate::columns::Own;
use crate::error::{Error, Refused};
use crate::fields;
use crate::options;
use crate::target::Out;

/// The level of zlib, which is the default of most programs.
const ZLIB_LEVEL: u32 = 6;

/// The ORC format for one table.
pub type Orc<S> = Ours<Layout, S>;

impl Orc<Own> {
    /// A table whose repeated values come as codes, so that the rest need not be searched for
    /// repetitions.
    pub(crate) fn coded(
        table: Table,
        chosen: &options::Layout,
        source: Own,
    ) -> Result<Self, Error> {
        Orc::new(table, chosen, false, source)
    }
}

impl<S: Source> Orc<S> {
    /// A table whose columns come as values, among which the writer finds what recurs.
    ///
    /// # Errors
    /// The layout's choices do not fit the format.
    pub fn plain(table: Table, chosen: &options::Layout, source: S) -> Result<Self, Error> {
        Orc::new(table, chosen, true, source)
    }

    fn new(
        table: Table,
        chosen: &options::Layout,
        find_dictionaries: bool,
        source: S,
    ) -> Result<Self, Error> {
        let options = Options {
            compression: match chosen.compression {
                options::Compression::None => Compression::None,
                options::Compression::Snappy => Compression::Snappy,
                options::Compression::Zstd(level) => Compression::Zstd(level),
                options::Compression::Lz4 => Compression::Lz4,
                options::Compression::Zlib => Compression::Zlib(ZLIB_LEVEL),
            },
            find_dictionaries,
            ..Options::default()
        };
        let layout = Layout::new(&fields::table_fields(table), options)
            .map_err(|e| Error::format(table, e))?;
        Ok(Ours::with(layout, source))
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

impl<S: Source> Format for Orc<S> {
    type Encoder = Columned<StripeWriter, S::Columns>;
    type File = FileWriter<Out>;

    fn encoder(&self) -> Result<Self::Encoder, Refused> {
        Ok(self.encoder_of(StripeWriter::new(&self.layout)?))
    }

    fn file(&self, out: Out) -> Result<Self::File, Refused> {
        Ok(FileWriter::new(out, Arc::clone(&self.layout))?)
    }
}

impl<C: Columns> Encode for Columned<StripeWriter, C> {
    type Piece = Stripe;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Refused> {
        let Columned { columns, writer } = self;
        Ok(columns.with_columns(batch, pool, |columns| writer.append(columns))??)
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

//! Writes Parquet by arrow-rs with its defaults, except for the codec and the version of pages. Its
//! column writers make row groups on several threads.

use std::io;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dyno_tpch::{Batch, Table, TextPool};
use dyno_tpch_arrow::{record_batch, schema};
use dyno_tpch_files::format::{Append, Encode, Format, Out, Refused};
use dyno_tpch_files::{Compression as Codec, Error, Layout};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;

/// The Parquet format of arrow-rs for one table.
pub(crate) struct ArrowParquet {
    schema: SchemaRef,
    properties: Arc<WriterProperties>,
}

/// The column writers of the current row group.
pub(crate) struct GroupEncoder {
    schema: SchemaRef,
    factory: ArrowRowGroupWriterFactory,
    columns: Vec<ArrowColumnWriter>,
}

/// A file to which finished row groups are appended.
pub(crate) struct ParquetFile {
    writer: SerializedFileWriter<Out>,
}

impl ArrowParquet {
    pub(crate) fn new(table: Table, layout: &Layout) -> Result<ArrowParquet, Error> {
        let failed = |e: ParquetError| Error::format(table, e);
        let compression = match layout.compression {
            Codec::None => Compression::UNCOMPRESSED,
            Codec::Snappy => Compression::SNAPPY,
            Codec::Lz4 => Compression::LZ4_RAW,
            Codec::Zstd(level) => Compression::ZSTD(ZstdLevel::try_new(level).map_err(failed)?),
            Codec::Zlib => return Err(layout.no_zlib()),
        };
        let version = match layout.page_version {
            2 => WriterVersion::PARQUET_2_0,
            _ => WriterVersion::PARQUET_1_0,
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_writer_version(version)
            .build();
        Ok(ArrowParquet {
            schema: schema(table),
            properties: Arc::new(properties),
        })
    }

    fn writer<W: io::Write + Send>(&self, out: W) -> Result<SerializedFileWriter<W>, ParquetError> {
        let converted = ArrowSchemaConverter::new().convert(&self.schema)?;
        SerializedFileWriter::new(
            out,
            converted.root_schema_ptr(),
            Arc::clone(&self.properties),
        )
    }
}

/// Takes the sink's own error out of that of the library, which wraps it.
fn refused(error: ParquetError) -> Refused {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => Refused::Output(*error),
            Err(inner) => Refused::Reason(inner.to_string()),
        },
        error => Refused::Reason(error.to_string()),
    }
}

impl Format for ArrowParquet {
    type Encoder = GroupEncoder;
    type File = ParquetFile;

    fn encoder(&self) -> Result<GroupEncoder, Refused> {
        // The factory takes schema and properties from a file; this one is never written.
        let file = self.writer(io::sink()).map_err(refused)?;
        Ok(GroupEncoder {
            schema: Arc::clone(&self.schema),
            factory: ArrowRowGroupWriterFactory::new(&file, Arc::clone(&self.schema)),
            columns: Vec::new(),
        })
    }

    fn file(&self, out: Out) -> Result<Self::File, Refused> {
        let writer = self.writer(out).map_err(refused)?;
        Ok(ParquetFile { writer })
    }
}

impl GroupEncoder {
    fn write(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), ParquetError> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(0)?;
        }
        let batch = record_batch(batch, pool)?;
        let fields = self.schema.fields().iter();
        for ((field, array), column) in fields.zip(batch.columns()).zip(&mut self.columns) {
            for leaf in compute_leaves(field, array)? {
                column.write(&leaf)?;
            }
        }
        Ok(())
    }
}

impl Encode for GroupEncoder {
    type Piece = Vec<ArrowColumnChunk>;

    fn append(&mut self, batch: &Batch, pool: &TextPool) -> Result<(), Refused> {
        self.write(batch, pool).map_err(refused)
    }

    fn finish(&mut self) -> Result<Self::Piece, Refused> {
        let closed = self.columns.drain(..).map(ArrowColumnWriter::close);
        let closed: Result<Vec<_>, ParquetError> = closed.collect();
        closed.map_err(refused)
    }
}

impl Append for ParquetFile {
    type Piece = Vec<ArrowColumnChunk>;

    fn append(&mut self, piece: Self::Piece) -> Result<u64, Refused> {
        self.add(piece).map_err(refused)
    }

    fn finish(self) -> Result<Out, Refused> {
        self.writer.into_inner().map_err(refused)
    }
}

impl ParquetFile {
    fn add(&mut self, piece: Vec<ArrowColumnChunk>) -> Result<u64, ParquetError> {
        let before = self.writer.bytes_written();
        // A piece without rows has no columns, and a row group without rows is left out.
        if !piece.is_empty() {
            let mut group = self.writer.next_row_group()?;
            for chunk in piece {
                chunk.append_to_row_group(&mut group)?;
            }
            group.close()?;
        }
        Ok((self.writer.bytes_written() - before) as u64)
    }
}

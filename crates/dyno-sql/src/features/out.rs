//! Where a training set goes: a Parquet file or an Arrow stream, under its name when it is whole.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::types::ColumnPath;
use dyno_io::{Buffering, Existing, Output, SinkKind, SinkWriter, stage};

use super::columns::PATH_COLUMNS;
use crate::args::features::{STANDARD_OUTPUT, TrainingFormat};

/// Batches of the sort, of 8,192 rows each, in a row group.
const GROUP_BATCHES: usize = 32;

/// Batches of the sort in a part of a stream, which its reader waits for.
const STREAM_BATCHES: usize = 4;

/// Writes the parts of a training set, in order.
pub(super) struct SetWriter {
    form: Form,
}

enum Form {
    Parquet(Box<SerializedFileWriter<Bytes>>, PartEncoder),
    Arrow(Box<StreamWriter<Bytes>>),
}

/// An output as the libraries' writers see it.
type Bytes = SinkWriter<Box<dyn Output>>;

/// Encodes parts of a set, each on its own, so that several threads can do it at once.
#[derive(Clone)]
pub(super) enum PartEncoder {
    /// A part is a row group.
    Parquet {
        schema: SchemaRef,
        row_groups: Arc<ArrowRowGroupWriterFactory>,
    },
    /// A part is a few batches, which the stream's writer encodes; that is little more than a copy.
    Arrow,
}

/// A part of a set.
pub(super) enum Part {
    /// The columns of a row group.
    Parquet(Vec<ArrowColumnChunk>),
    Arrow(Vec<RecordBatch>),
}

impl PartEncoder {
    /// How many batches of the sort become one part.
    pub(super) fn batches(&self) -> usize {
        match self {
            PartEncoder::Parquet { .. } => GROUP_BATCHES,
            PartEncoder::Arrow => STREAM_BATCHES,
        }
    }

    /// Makes a part of these rows, batch by batch.
    ///
    /// # Errors
    /// The library cannot encode them, or one of `batches` is an error.
    pub(super) fn encode(
        &self,
        batches: impl Iterator<Item = Result<RecordBatch>>,
    ) -> Result<Part> {
        let PartEncoder::Parquet { schema, row_groups } = self else {
            return Ok(Part::Arrow(batches.collect::<Result<_>>()?));
        };
        // Only encryption needs the group's number, which is not known here.
        let mut columns = row_groups.create_column_writers(0)?;
        for batch in batches {
            let batch = batch?;
            let arrays = schema.fields().iter().zip(batch.columns());
            // No column is nested, so each has one leaf, and one writer.
            for ((field, array), column) in arrays.zip(&mut columns) {
                for leaf in compute_leaves(field, array)? {
                    column.write(&leaf)?;
                }
            }
        }
        let chunks = columns.into_iter().map(ArrowColumnWriter::close);
        Ok(Part::Parquet(chunks.collect::<Result<_, _>>()?))
    }
}

impl SetWriter {
    /// Opens the file `out`, or standard output if it is `-`.
    ///
    /// # Errors
    /// The file cannot be made, another process is writing it, or standard output is a terminal.
    pub(super) fn open(out: &Path, format: TrainingFormat, schema: &SchemaRef) -> Result<Self> {
        let to_stdout = out == Path::new(STANDARD_OUTPUT);
        if to_stdout && io::stdout().is_terminal() {
            bail!(
                "standard output is a terminal, which cannot show {}; send it to a program or to a \
                 file",
                format.name()
            );
        }
        let kind = if to_stdout {
            SinkKind::Stdout
        } else {
            SinkKind::Std
        };
        let (output, _) = stage(kind, out, Existing::Replace, &Buffering::default())
            .with_context(|| format!("cannot write the training set {}", out.display()))?;
        let bytes = SinkWriter::new(output);
        let form = match format {
            TrainingFormat::Parquet => {
                let writer = ArrowWriter::try_new(bytes, Arc::clone(schema), Some(properties()))?;
                let (file, row_groups) = writer.into_serialized_writer()?;
                let encoder = PartEncoder::Parquet {
                    schema: Arc::clone(schema),
                    row_groups: Arc::new(row_groups),
                };
                Form::Parquet(Box::new(file), encoder)
            }
            TrainingFormat::Arrow => Form::Arrow(Box::new(StreamWriter::try_new(bytes, schema)?)),
        };
        Ok(Self { form })
    }

    /// What makes the parts of this set.
    pub(super) fn encoder(&self) -> PartEncoder {
        match &self.form {
            Form::Parquet(_, encoder) => encoder.clone(),
            Form::Arrow(_) => PartEncoder::Arrow,
        }
    }

    /// Appends a part that has rows.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn write(&mut self, part: Part) -> Result<()> {
        match (&mut self.form, part) {
            (Form::Parquet(file, _), Part::Parquet(chunks)) => {
                let mut group = file.next_row_group()?;
                for chunk in chunks {
                    chunk.append_to_row_group(&mut group)?;
                }
                group.close()?;
            }
            (Form::Arrow(stream), Part::Arrow(batches)) => {
                // A stream needs no message for a batch whose rows were all left out.
                for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
                    stream.write(batch)?;
                }
            }
            _ => bail!("a part of another format than the set's"),
        }
        Ok(())
    }

    /// Writes the end of the set and gives the file its name, on stable storage. Returns its bytes.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn finish(self) -> Result<u64> {
        let bytes = match self.form {
            Form::Parquet(file, _) => file.into_inner()?,
            Form::Arrow(mut writer) => {
                writer.finish()?;
                writer.into_inner()?
            }
        };
        Ok(bytes.into_inner().publish()?)
    }
}

fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder().set_compression(Compression::LZ4_RAW);
    // Nearly every path has a length and a direction of its own. A dictionary of them would be
    // longer than the plain values, and would take a sixth of the time of making a set.
    for name in PATH_COLUMNS {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), false);
    }
    properties.build()
}

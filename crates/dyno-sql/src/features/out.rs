//! Where a training set goes: a Parquet file or an Arrow stream, under its name when it is whole.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result, bail};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use dyno_io::{Buffering, Existing, Output, SinkKind, SinkWriter, stage};

use crate::args::features::{STANDARD_OUTPUT, TrainingFormat};

/// Rows of a row group. The writer holds one group in memory, some 15 MB of encoded columns.
const GROUP_ROWS: usize = 256 * 1024;

/// Writes the batches of a training set.
pub(super) struct SetWriter {
    form: Form,
}

enum Form {
    Parquet(Box<ArrowWriter<Bytes>>),
    Arrow(Box<StreamWriter<Bytes>>),
}

/// An output as the libraries' writers see it.
type Bytes = SinkWriter<Box<dyn Output>>;

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
                let properties = WriterProperties::builder()
                    .set_compression(Compression::LZ4_RAW)
                    .set_max_row_group_row_count(Some(GROUP_ROWS))
                    .build();
                let schema = SchemaRef::clone(schema);
                Form::Parquet(Box::new(ArrowWriter::try_new(
                    bytes,
                    schema,
                    Some(properties),
                )?))
            }
            TrainingFormat::Arrow => Form::Arrow(Box::new(StreamWriter::try_new(bytes, schema)?)),
        };
        Ok(Self { form })
    }

    /// Appends the rows of a batch.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        // A stream needs no message for a batch whose rows were all left out.
        if batch.num_rows() == 0 {
            return Ok(());
        }
        match &mut self.form {
            Form::Parquet(writer) => writer.write(batch)?,
            Form::Arrow(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    /// Writes the end of the set and gives the file its name, on stable storage. Returns its bytes.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn finish(self) -> Result<u64> {
        let bytes = match self.form {
            Form::Parquet(writer) => writer.into_inner()?,
            Form::Arrow(mut writer) => {
                writer.finish()?;
                writer.into_inner()?
            }
        };
        Ok(bytes.into_inner().publish()?)
    }
}

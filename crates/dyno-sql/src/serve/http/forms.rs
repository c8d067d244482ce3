//! The forms of an answer: JSON, CSV, an Arrow stream, Parquet, or lines of text.

use std::io::{self, Write};
use std::mem;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use parking_lot::Mutex;

use super::request::Request;
use crate::output::{Format, ResultWriter};
use crate::serve::refusal::{Kind, Refusal};

/// Rows of a row group, all of which the writer keeps in memory.
const GROUP_ROWS: usize = 64 * 1024;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Csv,
    Arrow,
    Parquet,
}

/// The forms with their names in `?format=` and their media types.
const FORMS: [(Form, &str, &str); 4] = [
    (Form::Json, "json", "application/json"),
    (Form::Csv, "csv", "text/csv"),
    (Form::Arrow, "arrow", "application/vnd.apache.arrow.stream"),
    (Form::Parquet, "parquet", "application/vnd.apache.parquet"),
];

impl Form {
    /// The form that a request asks for, by its parameter or else by what it accepts.
    ///
    /// # Errors
    /// The parameter names another one.
    pub(super) fn from_request(request: &Request) -> Result<Self, Refusal> {
        if let Some(name) = request.parameter("format") {
            let found = FORMS.iter().find(|(_, known, _)| *known == name);
            return found.map(|(form, ..)| *form).ok_or_else(|| {
                let message = format!("no format {name:?}: there are json, csv, arrow and parquet");
                Refusal::new(Kind::Value, message)
            });
        }
        let accepted = request.header("accept").unwrap_or_default();
        // Weights are not compared: a client that names one of these types wants it, and a browser
        // names none of them.
        let named = FORMS.iter().find(|(_, _, media)| accepted.contains(media));
        Ok(named.map_or(Form::Json, |(form, ..)| *form))
    }

    /// Its media type.
    pub(super) fn media_type(self) -> &'static str {
        let found = FORMS.iter().find(|(form, ..)| *form == self);
        found.map_or("application/json", |(_, _, media)| media)
    }
}

/// Where a writer writes, and from where its bytes are taken after each batch. Writers own what
/// they write to, so it is shared with them.
#[derive(Debug, Clone, Default)]
struct Taken(Arc<Mutex<Vec<u8>>>);

impl Write for Taken {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Turns the batches of an answer into bytes as they come.
pub(super) struct FormWriter {
    written: Taken,
    writer: Writer,
}

enum Writer {
    Text(ResultWriter<Taken>),
    Arrow(Box<StreamWriter<Taken>>),
    Parquet(Box<ArrowWriter<Taken>>),
}

impl FormWriter {
    /// A writer of batches with these columns.
    ///
    /// # Errors
    /// The form has no way to write a column.
    pub(super) fn new(form: Form, columns: &SchemaRef) -> anyhow::Result<Self> {
        let written = Taken::default();
        let out = written.clone();
        let columns = Arc::clone(columns);
        let writer = match form {
            Form::Json => Writer::Text(ResultWriter::new(Format::Json, columns, out)?),
            Form::Csv => Writer::Text(ResultWriter::new(Format::Csv, columns, out)?),
            Form::Arrow => Writer::Arrow(Box::new(StreamWriter::try_new(out, &columns)?)),
            Form::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::LZ4_RAW)
                    .set_max_row_group_row_count(Some(GROUP_ROWS))
                    .build();
                let writer = ArrowWriter::try_new(out, columns, Some(properties))?;
                Writer::Parquet(Box::new(writer))
            }
        };
        Ok(Self { written, writer })
    }

    /// The bytes of a batch; none if the form keeps it until more have come.
    ///
    /// # Errors
    /// The form has no way to write a value.
    pub(super) fn batch(&mut self, batch: RecordBatch) -> anyhow::Result<Vec<u8>> {
        match &mut self.writer {
            Writer::Text(writer) => writer.write(batch)?,
            Writer::Arrow(writer) => writer.write(&batch)?,
            Writer::Parquet(writer) => writer.write(&batch)?,
        }
        Ok(mem::take(&mut *self.written.0.lock()))
    }

    /// The bytes at the end.
    ///
    /// # Errors
    /// Those of [`FormWriter::batch`].
    pub(super) fn finish(self) -> anyhow::Result<Vec<u8>> {
        match self.writer {
            Writer::Text(writer) => writer.finish()?,
            Writer::Arrow(mut writer) => writer.finish()?,
            Writer::Parquet(writer) => {
                writer.close()?;
            }
        }
        Ok(mem::take(&mut *self.written.0.lock()))
    }
}

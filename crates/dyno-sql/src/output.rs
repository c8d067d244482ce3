//! Results as text: a table for people, CSV and JSON for programs.

use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::{ArrayWriter, WriterBuilder as JsonBuilder, writer::JsonArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;

/// Rows of one printed table. Column widths need all rows of a table at hand, so a longer result
/// comes as several tables and the memory stays bounded.
const TABLE_ROWS: usize = 10_000;

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns; more than 10,000 rows come as several tables.
    Table,
    /// RFC 4180 with a header line.
    Csv,
    /// One array of objects, one for each row, with explicit nulls.
    Json,
}

/// Writes the batches of one result as they come.
pub struct ResultWriter<W: Write> {
    form: Form<W>,
}

enum Form<W: Write> {
    Table {
        out: W,
        schema: SchemaRef,
        held: Vec<RecordBatch>,
        held_rows: usize,
        printed: bool,
    },
    Csv(Box<datafusion::arrow::csv::Writer<W>>),
    Json {
        writer: datafusion::arrow::json::Writer<W, JsonArray>,
    },
}

impl<W: Write> ResultWriter<W> {
    /// A writer of results with this schema.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(format: Format, schema: SchemaRef, out: W) -> Result<Self> {
        let form = match format {
            Format::Table => Form::Table {
                out,
                schema,
                held: Vec::new(),
                held_rows: 0,
                printed: false,
            },
            Format::Csv => {
                let mut writer = WriterBuilder::new().with_header(true).build(out);
                // An empty batch makes the header appear for a result without rows, too.
                writer.write(&RecordBatch::new_empty(schema))?;
                Form::Csv(Box::new(writer))
            }
            Format::Json => {
                let writer: ArrayWriter<W> = JsonBuilder::new()
                    .with_explicit_nulls(true)
                    .build::<_, JsonArray>(out);
                Form::Json { writer }
            }
        };
        Ok(Self { form })
    }

    /// Writes one batch, or keeps it until a table of them can be printed.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(&mut self, batch: RecordBatch) -> Result<()> {
        match &mut self.form {
            Form::Csv(writer) => writer.write(&batch)?,
            Form::Json { writer } => writer.write(&batch)?,
            Form::Table {
                out,
                schema,
                held,
                held_rows,
                printed,
            } => {
                // Widths are known only when all rows of a table are, so rows are kept. A result of
                // any length must not be, hence the limit.
                *held_rows += batch.num_rows();
                held.push(batch);
                if *held_rows >= TABLE_ROWS {
                    print(out, schema, held)?;
                    *held_rows = 0;
                    *printed = true;
                }
            }
        }
        Ok(())
    }

    /// Writes what was kept and the end of the result, and flushes the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self) -> Result<()> {
        match self.form {
            Form::Csv(writer) => writer.into_inner().flush()?,
            Form::Json { mut writer } => {
                writer.finish()?;
                let mut out = writer.into_inner();
                out.write_all(b"\n")?;
                out.flush()?;
            }
            Form::Table {
                mut out,
                schema,
                mut held,
                printed,
                ..
            } => {
                // A result without rows still prints its header once.
                if !held.is_empty() || !printed {
                    print(&mut out, &schema, &mut held)?;
                }
                out.flush()?;
            }
        }
        Ok(())
    }
}

fn print(out: &mut impl Write, schema: &SchemaRef, held: &mut Vec<RecordBatch>) -> Result<()> {
    let table = pretty_format_batches_with_schema(schema.clone(), held)?;
    writeln!(out, "{table}")?;
    held.clear();
    Ok(())
}

//! A table of ORC files for DataFusion, which reads none itself; the reader is `orc-rust`.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result as SqlResult};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::stream;
use orc_rust::ArrowReaderBuilder;
use orc_rust::projection::ProjectionMask;

/// The ORC files of one table.
#[derive(Debug)]
pub struct OrcTable {
    paths: Vec<PathBuf>,
    schema: SchemaRef,
}

impl OrcTable {
    /// Reads the footers. The columns are those of the first file.
    ///
    /// # Errors
    /// A file cannot be read, is not ORC, or has other columns than the first.
    pub fn open(paths: &[PathBuf]) -> Result<OrcTable> {
        let Some((first, others)) = paths.split_first() else {
            bail!("there is no file");
        };
        let schema = reader(first)?.schema();
        for path in others {
            if reader(path)?.schema().fields() != schema.fields() {
                bail!("{} has other columns than the first file", path.display());
            }
        }
        Ok(OrcTable {
            paths: paths.to_vec(),
            schema,
        })
    }

    /// The columns with their types.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

fn reader(path: &Path) -> Result<ArrowReaderBuilder<File>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    ArrowReaderBuilder::try_new(file).with_context(|| format!("cannot read {}", path.display()))
}

#[async_trait]
impl TableProvider for OrcTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> SqlResult<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        let target = state.config().target_partitions().max(1);
        let shares = target.div_ceil(self.paths.len().max(1));
        let mut partitions: Vec<Arc<dyn PartitionStream>> = Vec::new();
        for path in &self.paths {
            let bytes = path.metadata()?.len() as usize;
            // A stripe belongs to the share that it begins in, so that each is read once. A file of
            // one stripe leaves the other shares empty, which costs reading its footer.
            for share in 0..shares {
                partitions.push(Arc::new(Share {
                    path: path.clone(),
                    bytes: bytes * share / shares..bytes * (share + 1) / shares,
                    schema: Arc::clone(&schema),
                }));
            }
        }
        let scan = StreamingTableExec::try_new(schema, partitions, None, [], false, limit)?;
        Ok(Arc::new(scan))
    }
}

/// The stripes that begin in a range of a file's bytes, with some of the columns.
#[derive(Debug)]
struct Share {
    path: PathBuf,
    bytes: Range<usize>,
    schema: SchemaRef,
}

impl Share {
    fn batches(&self) -> Result<impl Iterator<Item = Result<RecordBatch, ArrowError>> + use<>> {
        let builder = reader(&self.path)?;
        let file = Arc::clone(&self.schema);
        let mut names: Vec<String> = file.fields().iter().map(|f| f.name().clone()).collect();
        // `count(*)` wants no column at all, of which the reader would make batches without rows.
        if names.is_empty() {
            names.extend(builder.schema().fields().first().map(|f| f.name().clone()));
        }
        let mask = ProjectionMask::named_roots(builder.file_metadata().root_data_type(), &names);
        let rows = builder
            .with_projection(mask)
            .with_file_byte_range(self.bytes.clone())
            .build();
        let schema = Arc::clone(&self.schema);
        Ok(rows.map(move |batch| projected(&batch?, &schema)))
    }
}

/// The batch with the columns of `schema`, in its order: the reader keeps that of the file.
fn projected(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = schema.fields().iter().map(|field| {
        let column = batch.column_by_name(field.name()).cloned();
        column.ok_or_else(|| ArrowError::SchemaError(format!("{} is missing", field.name())))
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

impl PartitionStream for Share {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let path = self.path.clone();
        let failed = move |error: &dyn std::fmt::Display| {
            DataFusionError::Execution(format!("{}: {error}", path.display()))
        };
        let (batches, error) = match self.batches() {
            Ok(batches) => (Some(batches), None),
            Err(error) => (None, Some(Err(failed(&format!("{error:#}"))))),
        };
        let batches = batches.into_iter().flatten();
        let batches = batches.map(move |batch| batch.map_err(|error| failed(&error)));
        let all = stream::iter(error.into_iter().chain(batches));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), all))
    }
}

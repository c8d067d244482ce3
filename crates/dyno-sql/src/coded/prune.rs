//! Row groups that can hold rows of a query, by the statistics of the footer.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::common::pruning::PruningStatistics;
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::file::metadata::RowGroupMetaData;
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use dyno_formats::parquet_read::ParquetFile;

/// The row groups of `file` that the conditions do not rule out; all of them when the statistics
/// don't tell.
pub(super) fn row_groups(
    file: &ParquetFile,
    conditions: &[Arc<dyn PhysicalExpr>],
    schema: &SchemaRef,
) -> Vec<usize> {
    let all = 0..file.row_groups();
    if conditions.is_empty() {
        return all.collect();
    }
    let condition = conjunction(conditions.iter().map(Arc::clone));
    let statistics = Footer { file, schema };
    let kept = PruningPredicateBuilder::new()
        .with_file_schema(Arc::clone(schema))
        .try_build(condition)
        .and_then(|predicate| predicate.prune(&statistics));
    match kept {
        Ok(kept) => all
            .filter(|at| kept.get(*at).copied().unwrap_or(true))
            .collect(),
        // Statistics in a form that is not known only cost time.
        Err(_) => all.collect(),
    }
}

struct Footer<'f> {
    file: &'f ParquetFile,
    schema: &'f SchemaRef,
}

impl Footer<'_> {
    fn of(
        &self,
        column: &datafusion::common::Column,
        read: impl Fn(
            &StatisticsConverter<'_>,
            &[RowGroupMetaData],
        ) -> datafusion::parquet::errors::Result<ArrayRef>,
    ) -> Option<ArrayRef> {
        let metadata = self.file.metadata();
        let stored = metadata.file_metadata().schema_descr();
        let converter = StatisticsConverter::try_new(&column.name, self.schema, stored).ok()?;
        read(&converter, metadata.row_groups()).ok()
    }
}

impl PruningStatistics for Footer<'_> {
    fn min_values(&self, column: &datafusion::common::Column) -> Option<ArrayRef> {
        self.of(column, |converter, groups| converter.row_group_mins(groups))
    }

    fn max_values(&self, column: &datafusion::common::Column) -> Option<ArrayRef> {
        self.of(column, |converter, groups| {
            converter.row_group_maxes(groups)
        })
    }

    fn num_containers(&self) -> usize {
        self.file.row_groups()
    }

    fn null_counts(&self, column: &datafusion::common::Column) -> Option<ArrayRef> {
        self.of(column, |converter, groups| {
            Ok(Arc::new(converter.row_group_null_counts(groups)?))
        })
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let groups = 0..self.file.row_groups();
        let rows: UInt64Array = groups
            .map(|at| Some(self.file.row_group_rows(at)))
            .collect();
        Some(Arc::new(rows))
    }

    fn contained(
        &self,
        _: &datafusion::common::Column,
        _: &HashSet<ScalarValue>,
    ) -> Option<BooleanArray> {
        None
    }
}

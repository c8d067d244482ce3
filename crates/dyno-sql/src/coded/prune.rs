//! Rows that can meet a query's conditions, by the statistics of row groups and of pages.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::errors::Result;
use datafusion::parquet::file::metadata::RowGroupMetaData;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use dyno_grouping::RowGroup;

use super::expression::is_text;
use super::pages::Pages;
use crate::file::TableFile;

/// The conditions of a query against what files say of themselves.
pub(super) struct Pruning<'s> {
    schema: &'s SchemaRef,
    /// All conditions, for row groups.
    whole: Option<PruningPredicate>,
    /// Conditions on one column each, for its pages. Not on strings, which come in no order.
    single: Vec<(String, PruningPredicate)>,
}

impl<'s> Pruning<'s> {
    pub(super) fn new(conditions: &[Arc<dyn PhysicalExpr>], schema: &'s SchemaRef) -> Self {
        // A condition that cannot be compared with statistics prunes nothing. That costs time and
        // never a row, so it is not an error.
        let predicate = |condition| {
            let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema));
            builder.try_build(condition).ok()
        };
        let whole = conjunction(conditions.iter().map(Arc::clone));
        // The pages of two columns have different rows, so a condition over both cannot be decided
        // page by page. Row groups are the same for all columns.
        let single = conditions.iter().filter_map(|condition| {
            let columns = collect_columns(condition);
            let mut columns = columns.into_iter();
            let (Some(column), None) = (columns.next(), columns.next()) else {
                return None;
            };
            let field = schema.fields().get(column.index())?;
            let numbers = !is_text(field.data_type());
            let predicate = numbers.then(|| predicate(Arc::clone(condition)))??;
            Some((field.name().clone(), predicate))
        });
        Self {
            schema,
            single: single.collect(),
            whole: (!conditions.is_empty()).then(|| predicate(whole)).flatten(),
        }
    }

    /// What of `file` the conditions do not rule out; all of it when the statistics don't tell.
    pub(super) fn row_groups(&self, file: &TableFile) -> Vec<RowGroup> {
        let statistics = OfRowGroups {
            file,
            schema: self.schema,
        };
        let prune = |predicate: &PruningPredicate| predicate.prune(&statistics).ok();
        let kept = self.whole.as_ref().and_then(prune).unwrap_or_default();
        (0..file.row_groups())
            .filter(|at| kept.get(*at).copied().unwrap_or(true))
            .map(|index| RowGroup {
                index,
                rows: self.rows(file, index),
                settled: Vec::new(),
            })
            .filter(|row_group| !row_group.is_empty())
            .collect()
    }

    /// Rows of a row group that are in pages which the conditions do not rule out.
    fn rows(&self, file: &TableFile, row_group: usize) -> Vec<Range<usize>> {
        let all = 0..file.row_group_rows(row_group) as usize;
        let pages = self.single.iter().filter_map(|(column, predicate)| {
            self.rows_of_pages(file, row_group, column, predicate)
        });
        pages.fold(vec![all], |rows, others| both(&rows, &others))
    }

    fn rows_of_pages(
        &self,
        file: &TableFile,
        row_group: usize,
        column: &str,
        predicate: &PruningPredicate,
    ) -> Option<Vec<Range<usize>>> {
        let pages = Pages::from_file(file, row_group, column)?;
        let statistics = OfPages {
            pages: &pages,
            schema: self.schema,
        };
        let kept = predicate.prune(&statistics).ok()?;
        let rows = pages.rows.into_iter().zip(kept);
        Some(
            rows.filter_map(|(rows, kept)| kept.then_some(rows))
                .collect(),
        )
    }
}

/// Rows that are in both lists, each in order.
fn both(left: &[Range<usize>], right: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut shared: Vec<Range<usize>> = Vec::new();
    let (mut l, mut r) = (0, 0);
    while let (Some(a), Some(b)) = (left.get(l), right.get(r)) {
        let (start, end) = (a.start.max(b.start), a.end.min(b.end));
        match shared.last_mut() {
            _ if start >= end => {}
            Some(last) if last.end == start => last.end = end,
            _ => shared.push(start..end),
        }
        // The range that ends first cannot meet any later range of the other list.
        if a.end <= b.end {
            l += 1;
        } else {
            r += 1;
        }
    }
    shared
}

/// Statistics of a file's row groups.
struct OfRowGroups<'f> {
    file: &'f TableFile,
    schema: &'f SchemaRef,
}

impl OfRowGroups<'_> {
    fn read(
        &self,
        column: &Column,
        read: impl Fn(&StatisticsConverter<'_>, &[RowGroupMetaData]) -> Result<ArrayRef>,
    ) -> Option<ArrayRef> {
        let metadata = self.file.metadata();
        let stored = metadata.file_metadata().schema_descr();
        let converter = StatisticsConverter::try_new(&column.name, self.schema, stored).ok()?;
        read(&converter, metadata.row_groups()).ok()
    }
}

impl PruningStatistics for OfRowGroups<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.read(column, |converter, groups| converter.row_group_mins(groups))
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.read(column, |converter, groups| {
            converter.row_group_maxes(groups)
        })
    }

    fn num_containers(&self) -> usize {
        self.file.row_groups()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        self.read(column, |converter, groups| {
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

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

/// Statistics of the pages of one column, which the conditions are about.
struct OfPages<'f> {
    pages: &'f Pages<'f>,
    schema: &'f SchemaRef,
}

impl PruningStatistics for OfPages<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.pages.least(self.schema, &column.name).ok()
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.pages.most(self.schema, &column.name).ok()
    }

    fn num_containers(&self) -> usize {
        self.pages.rows.len()
    }

    /// The columns that are read here have no NULL, whatever an index says.
    fn null_counts(&self, _: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_by_both_lists() {
        let rows = |ranges: &[(usize, usize)]| -> Vec<Range<usize>> {
            ranges.iter().map(|(start, end)| *start..*end).collect()
        };
        let left = rows(&[(0, 10), (20, 30), (30, 40), (50, 60)]);
        let right = rows(&[(5, 25), (28, 35), (60, 70)]);
        let shared = both(&left, &right);
        assert_eq!(shared, rows(&[(5, 10), (20, 25), (28, 35)]));
        assert_eq!(both(&right, &left), shared);
        assert!(both(&left, &[]).is_empty());
    }
}

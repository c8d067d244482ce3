//! Where the operator goes: the rule that looks at plans.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use dyno_formats::parquet_read::{ColumnKind, ParquetFile};
use dyno_grouping::Source;

use super::exec::CodedAggregateExec;
use super::prune::row_groups;
use super::shape::Below;
use super::spec::{Top, Translation};
use crate::feed::FeedTable;
use crate::options::DynoOptions;

/// Puts [`CodedAggregateExec`] in place of an aggregation over the table, with the filters and
/// projections below it. It runs before the rules that spread a plan over threads, since the
/// operator does that itself.
#[derive(Debug)]
pub struct CodedAggregateRule {
    table: Arc<FeedTable>,
}

impl CodedAggregateRule {
    /// A rule for scans of this table.
    pub fn new(table: Arc<FeedTable>) -> Self {
        Self { table }
    }

    /// The operator for an aggregation.
    fn replace(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<CodedAggregateExec> {
        let whole = plan.downcast_ref::<AggregateExec>()?;
        let reading = match whole.mode() {
            AggregateMode::Final | AggregateMode::FinalPartitioned => {
                whole.input().downcast_ref::<AggregateExec>()?
            }
            AggregateMode::Single | AggregateMode::SinglePartitioned => whole,
            _ => return None,
        };
        let unfiltered = reading.filter_expr().iter().all(Option::is_none);
        let partial_ok =
            matches!(reading.mode(), AggregateMode::Partial) || reading.mode() == whole.mode();
        let limited = whole.limit_options().is_some() || reading.limit_options().is_some();
        if !unfiltered || !partial_ok || limited || reading.group_expr().has_grouping_set() {
            return None;
        }
        let below = Below::of(reading.input())?;
        let translation = Translation::of(reading, whole.schema(), &below)?;
        let sources = self.sources(&translation, &below)?;
        Some(CodedAggregateExec::new(translation.spec, sources))
    }

    /// The operator for the aggregation below a sort with a limit, with the projections between
    /// them: groups that the sort would drop are dropped before their keys become strings.
    fn replace_below_sort(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        let sort = plan.downcast_ref::<SortExec>()?;
        let rows = sort.fetch()?;
        let first = sort.expr().first();
        let mut column = first.expr.downcast_ref::<Column>()?.index();
        let mut between = vec![Arc::clone(plan)];
        let mut at = sort.input();
        while let Some(projection) = at.downcast_ref::<ProjectionExec>() {
            let below = &projection.expr().get(column)?.expr;
            column = below.downcast_ref::<Column>()?.index();
            between.push(Arc::clone(at));
            at = projection.input();
        }
        let top = |keys: usize| {
            Some(Top {
                measure: column.checked_sub(keys)?,
                descending: first.options.descending,
                rows,
            })
        };
        let coded = self.replace(at)?;
        let top = top(coded.spec().keys())?;
        let mut new: Arc<dyn ExecutionPlan> = Arc::new(coded.with_top(top));
        for plan in between.into_iter().rev() {
            new = replace_children_if_necessary(plan, vec![new]).ok()?;
        }
        Some(new)
    }

    /// The table's files, when the plan below reads all of them whole.
    fn sources(&self, translation: &Translation, below: &Below<'_>) -> Option<Vec<Source>> {
        let read = below
            .scan
            .file_groups
            .iter()
            .flat_map(|group| group.files());
        let mut sources: Vec<Source> = Vec::new();
        for part in read {
            let file = self.table.file(part.path())?;
            if part.range.is_some() {
                return None;
            }
            let columns = locate(translation, file)?;
            if let Some(first) = sources.first() {
                let kinds = |columns: &[(usize, ColumnKind)]| -> Vec<ColumnKind> {
                    columns.iter().map(|(_, kind)| *kind).collect()
                };
                if kinds(&first.columns) != kinds(&columns) {
                    return None;
                }
            }
            sources.push(Source {
                row_groups: row_groups(file, &below.conditions, self.table.schema()),
                file: Arc::clone(file),
                columns,
            });
        }
        (sources.len() == self.table.files().len()).then_some(sources)
    }
}

impl PhysicalOptimizerRule for CodedAggregateRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = config.extensions.get::<DynoOptions>();
        if !options.is_none_or(|options| options.coded_aggregate) {
            return Ok(plan);
        }
        plan.transform_down(|plan| {
            if let Some(sort) = self.replace_below_sort(&plan) {
                return Ok(Transformed::yes(sort));
            }
            Ok(match self.replace(&plan) {
                Some(coded) => Transformed::yes(Arc::new(coded) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "coded_aggregate"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Where the columns lie in `file`; none when one of them can't be read as codes or integers.
fn locate(translation: &Translation, file: &ParquetFile) -> Option<Vec<(usize, ColumnKind)>> {
    let columns = translation.spec.query.columns.iter().enumerate();
    columns
        .map(|(at, name)| {
            let moments = file.moments(name);
            let (column, kind) = file.column(name).or(moments)?;
            let fits = if kind == ColumnKind::String {
                file.is_coded(column)
            } else if translation.by_code.contains(&at) {
                // Integers without a dictionary get codes as they come, which is for values that
                // repeat, such as times.
                file.is_readable(column) && (file.is_coded(column) || moments.is_some())
            } else {
                file.is_readable(column)
            };
            fits.then_some((column, kind))
        })
        .collect()
}

//! Where the operator goes: the rule that looks at plans.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRewriter};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use dyno_grouping::Selection;

use super::conditions::{Conditions, place};
use super::exec::CodedAggregateExec;
use super::select::CodedSelectExec;
use super::shape::Below;
use super::sources::sources;
use super::spec::{Top, Translation};
use crate::feed::FeedTable;
use crate::options::DynoOptions;

/// Puts [`CodedAggregateExec`] in place of an aggregation over the table, with the filters and
/// projections below it, and [`CodedSelectExec`] in place of other filters over it. It runs before
/// the rules that spread a plan over threads and push conditions into the scan.
#[derive(Debug)]
pub struct CodedRule {
    table: Arc<FeedTable>,
}

impl CodedRule {
    /// A rule for scans of this table.
    pub fn new(table: Arc<FeedTable>) -> Self {
        Self { table }
    }

    /// The operator for an aggregation.
    fn replace(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<CodedAggregateExec> {
        let whole = plan.downcast_ref::<AggregateExec>()?;
        // An aggregation over threads is a partial one for each partition and a final one above.
        // The operator replaces both. The lower one has the expressions over the table's columns.
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
        let below = Below::from_plan(reading.input())?;
        let translation = Translation::from_aggregate(reading, whole.schema(), &below)?;
        let Translation {
            spec,
            by_code,
            rising,
        } = translation;
        let columns = &spec.query.columns;
        let mut sources = sources(&self.table, &below, columns, |at| by_code.contains(&at))?;
        for source in &mut sources {
            // Where all rows of a page have one key, the scan takes it from one value of the page
            // instead of looking at each row.
            let file = self.table.file_of(&source.file)?;
            for row_group in &mut source.row_groups {
                let schema = self.table.schema();
                let settled = rising.iter().map(|key| match key {
                    Some(key) => key.settled(file, row_group.index, schema),
                    None => Vec::new(),
                });
                row_group.settled = settled.collect();
            }
        }
        Some(CodedAggregateExec::new(spec, sources))
    }

    /// The operator for rows that conditions choose. Where plans above tell the scan which rows
    /// they can still use, as it goes, the general plan is better at all but looking for one
    /// string.
    fn replace_filter(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        threads: usize,
        has_dynamic_filter: bool,
    ) -> Option<CodedSelectExec> {
        plan.downcast_ref::<FilterExec>()?;
        let below = Below::from_plan(plan)?;
        let table = below.scan.file_schema();
        let mut columns = Vec::new();
        let Conditions {
            filters,
            tested,
            exact,
        } = Conditions::from_filters(&below, &mut columns)?;
        if has_dynamic_filter && !exact {
            return None;
        }
        let wanted = below.plain_columns()?.into_iter();
        let selection = Selection {
            filters,
            wanted: wanted
                .map(|column| place(&mut columns, table.field(column).name()))
                .collect(),
            columns,
        };
        let columns = &selection.columns;
        let sources = sources(&self.table, &below, columns, |at| tested.contains(&at))?;
        // At least one condition must be decided by codes. The general plan is faster at a range of
        // times alone, because it tests no row of a row group that lies within the range.
        let is_coded = |column: &usize| {
            let mut sources = sources.iter();
            sources.all(|source| source.file.is_coded(source.columns[*column].0))
        };
        if !tested.iter().any(is_coded) {
            return None;
        }
        let (schema, text) = (plan.schema(), below.text());
        Some(CodedSelectExec::new(
            selection, sources, schema, text, threads,
        ))
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
        // The sort's column is followed down through projections. One that computes it ends the
        // search, since the order of its results is not that of the aggregate.
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
}

impl PhysicalOptimizerRule for CodedRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = config.extensions.get::<DynoOptions>();
        let mut walk = Walk {
            rule: self,
            aggregate: options.is_none_or(|options| options.coded_aggregate),
            select: options.is_none_or(|options| options.coded_select),
            threads: config.execution.target_partitions,
            telling: 0,
        };
        plan.rewrite(&mut walk).data()
    }

    fn name(&self) -> &str {
        "coded"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// One walk through a plan.
struct Walk<'r> {
    rule: &'r CodedRule,
    aggregate: bool,
    select: bool,
    threads: usize,
    /// How many plans above tell the scan which rows they can still use.
    telling: usize,
}

impl TreeNodeRewriter for Walk<'_> {
    type Node = Arc<dyn ExecutionPlan>;

    fn f_down(&mut self, plan: Self::Node) -> Result<Transformed<Self::Node>> {
        let mut new: Option<Self::Node> = None;
        if self.aggregate {
            let coded = || Some(Arc::new(self.rule.replace(&plan)?) as _);
            new = self.rule.replace_below_sort(&plan).or_else(coded);
        }
        if new.is_none() && self.select {
            let has_dynamic_filter = self.telling > 0;
            let coded = self
                .rule
                .replace_filter(&plan, self.threads, has_dynamic_filter);
            new = coded.map(|coded| Arc::new(coded) as _);
        }
        let transformed = new.map_or_else(|| Transformed::no(plan), Transformed::yes);
        self.telling += usize::from(tells(&transformed.data));
        Ok(transformed)
    }

    fn f_up(&mut self, plan: Self::Node) -> Result<Transformed<Self::Node>> {
        self.telling -= usize::from(tells(&plan));
        Ok(Transformed::no(plan))
    }
}

/// Whether a plan passes a dynamic filter to the scan below it while it runs: a sort that keeps
/// only the first rows, and a hash join.
fn tells(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let sort = plan.downcast_ref::<SortExec>();
    sort.is_some_and(|sort| sort.fetch().is_some()) || plan.downcast_ref::<HashJoinExec>().is_some()
}

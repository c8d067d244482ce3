//! Where the operator goes: the rule that looks at plans.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::projection::ProjectionExec;

use super::exec::CodedAggregateExec;
use super::spec::{Measure, Spec};
use super::workers::Source;
use crate::options::DynoOptions;
use crate::spots::SpotsTable;

/// Puts [`CodedAggregateExec`] in place of an aggregation over the whole table by one string
/// column. It runs before the rules that spread a plan over threads, since the operator does
/// that itself.
#[derive(Debug)]
pub struct CodedAggregateRule {
    table: Arc<SpotsTable>,
}

impl CodedAggregateRule {
    /// A rule for scans of this table.
    pub fn new(table: Arc<SpotsTable>) -> Self {
        Self { table }
    }

    fn replace(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<CodedAggregateExec> {
        let whole = plan.downcast_ref::<AggregateExec>()?;
        let reading = match whole.mode() {
            AggregateMode::Final | AggregateMode::FinalPartitioned => {
                whole.input().downcast_ref::<AggregateExec>()?
            }
            AggregateMode::Single | AggregateMode::SinglePartitioned => whole,
            _ => return None,
        };
        let [(key, _)] = reading.group_expr().expr() else {
            return None;
        };
        let unfiltered = reading.filter_expr().iter().all(Option::is_none);
        let partial_ok =
            matches!(reading.mode(), AggregateMode::Partial) || reading.mode() == whole.mode();
        if !unfiltered || !partial_ok || reading.group_expr().has_grouping_set() {
            return None;
        }
        let input = reading.input();
        let mut values = Vec::new();
        let measures = reading
            .aggr_expr()
            .iter()
            .map(|aggregate| {
                let (measure, name) = measure(aggregate, input)?;
                let Some(name) = name else {
                    return Some(Measure::Count);
                };
                let index = Spec::value_index(&mut values, &name);
                values[index].sum |= matches!(measure, Measure::Sum(_) | Measure::Avg(_));
                values[index].extremes |= matches!(measure, Measure::Min(_) | Measure::Max(_));
                Some(measure.over(index))
            })
            .collect::<Option<Vec<_>>>()?;
        let key = column_name(key, input)?;
        let spec = Spec {
            key,
            values,
            measures,
            schema: whole.schema(),
        };
        let sources = self.sources(&spec, input)?;
        Some(CodedAggregateExec::new(spec, sources))
    }

    /// The table's files, when the plan below reads all of them whole.
    fn sources(&self, spec: &Spec, input: &Arc<dyn ExecutionPlan>) -> Option<Vec<Source>> {
        let scan = scan_below(input)?;
        if scan.limit.is_some() || scan.file_source().filter().is_some() {
            return None;
        }
        let read = scan.file_groups.iter().flat_map(|group| group.files());
        let mut sources = Vec::new();
        for part in read {
            let file = self.table.file(part.path())?;
            if part.range.is_some() {
                return None;
            }
            let located = spec.locate(file)?;
            sources.push(Source {
                file: Arc::clone(file),
                located,
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

impl Measure {
    /// The same over another value column.
    fn over(self, index: usize) -> Self {
        match self {
            Self::Count => Self::Count,
            Self::Sum(_) => Self::Sum(index),
            Self::Avg(_) => Self::Avg(index),
            Self::Min(_) => Self::Min(index),
            Self::Max(_) => Self::Max(index),
        }
    }
}

/// What an aggregate computes and of which column; none when the operator can't.
fn measure(
    aggregate: &AggregateFunctionExpr,
    input: &Arc<dyn ExecutionPlan>,
) -> Option<(Measure, Option<String>)> {
    if aggregate.is_distinct() || !aggregate.order_bys().is_empty() {
        return None;
    }
    let arguments = aggregate.expressions();
    let [argument] = arguments.as_slice() else {
        return None;
    };
    let function = aggregate.fun().name();
    if function == "count" {
        let counts_rows = match argument.downcast_ref::<Literal>() {
            Some(literal) => !literal.value().is_null(),
            // The readers only know columns without NULLs, and so does the scan's schema.
            None => !argument.nullable(&input.schema()).ok()?,
        };
        return counts_rows.then_some((Measure::Count, None));
    }
    let output = aggregate.field();
    let supported = match function {
        "sum" | "min" | "max" => output.data_type().is_integer(),
        "avg" => output.data_type() == &DataType::Float64,
        _ => false,
    };
    if !supported {
        return None;
    }
    let name = column_name(strip_widening(argument, input)?, input)?;
    let measure = match function {
        "sum" => Measure::Sum(0),
        "avg" => Measure::Avg(0),
        "min" => Measure::Min(0),
        _ => Measure::Max(0),
    };
    Some((measure, Some(name)))
}

/// The argument without a cast that keeps every value: to a wider integer, or to a float for avg.
fn strip_widening<'a>(
    argument: &'a Arc<dyn PhysicalExpr>,
    input: &Arc<dyn ExecutionPlan>,
) -> Option<&'a Arc<dyn PhysicalExpr>> {
    let Some(cast) = argument.downcast_ref::<CastExpr>() else {
        return Some(argument);
    };
    let from = cast.expr().data_type(&input.schema()).ok()?;
    let keeps = match (&from, cast.cast_type()) {
        (from, DataType::Float64) => from.is_integer(),
        (from, DataType::Int64) => from.is_integer() && *from != DataType::UInt64,
        (from, DataType::UInt64) => from.is_unsigned_integer(),
        _ => false,
    };
    keeps.then_some(cast.expr())
}

/// The table's name of a column, followed down through projections that only rename.
fn column_name(expr: &Arc<dyn PhysicalExpr>, input: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let column = expr.downcast_ref::<Column>()?;
    if let Some(projection) = input.downcast_ref::<ProjectionExec>() {
        let below = projection.expr().get(column.index())?;
        return column_name(&below.expr, projection.input());
    }
    // A scan may rename too; its file source then has a projection with other expressions.
    let scan = scan_below(input)?;
    match scan.file_source().projection() {
        None => Some(
            scan.file_schema()
                .fields()
                .get(column.index())?
                .name()
                .clone(),
        ),
        Some(projection) => {
            let expr = &projection.as_ref().get(column.index())?.expr;
            let stored = expr.downcast_ref::<Column>()?;
            Some(
                scan.file_schema()
                    .fields()
                    .get(stored.index())?
                    .name()
                    .clone(),
            )
        }
    }
}

/// The file scan at the bottom, when only projections lie above it.
fn scan_below(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return scan_below(projection.input());
    }
    plan.downcast_ref::<DataSourceExec>()?
        .data_source()
        .downcast_ref::<FileScanConfig>()
}

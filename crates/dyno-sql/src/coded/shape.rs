//! The part of a plan that an operator replaces or lies above: projections, filters, one scan.

use std::sync::Arc;

use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::expression::substitute;

/// What lies below an operator, as expressions over the table's own columns.
pub(super) struct Below<'p> {
    pub(super) scan: &'p FileScanConfig,
    /// Conditions that all rows must meet.
    pub(super) conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// The columns that the operator sees.
    columns: Vec<Arc<dyn PhysicalExpr>>,
}

impl<'p> Below<'p> {
    /// None when there is something else than projections and filters above one scan.
    pub(super) fn from_plan(plan: &'p Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let mut below = Self::from_plan(projection.input())?;
            below.columns = projection
                .expr()
                .iter()
                .map(|column| below.lower(&column.expr))
                .collect::<Option<_>>()?;
            return Some(below);
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let mut below = Self::from_plan(filter.input())?;
            // A filter with a limit hands on the first rows that it meets, which an operator that
            // reads in another order would not reproduce.
            if ExecutionPlan::fetch(filter).is_some() {
                return None;
            }
            for condition in split_conjunction(filter.predicate()) {
                let condition = below.lower(condition)?;
                below.conditions.push(condition);
            }
            if let Some(kept) = filter.projection() {
                below.columns = kept
                    .iter()
                    .map(|index| below.columns.get(*index).cloned())
                    .collect::<Option<_>>()?;
            }
            return Some(below);
        }
        Self::of_scan(plan)
    }

    fn of_scan(plan: &'p Arc<dyn ExecutionPlan>) -> Option<Self> {
        let scan = plan
            .downcast_ref::<DataSourceExec>()?
            .data_source()
            .downcast_ref::<FileScanConfig>()?;
        // A limit or a filter inside the scan would be lost, because the operator replaces the
        // scan.
        if scan.limit.is_some() || scan.file_source().filter().is_some() {
            return None;
        }
        // A scan may rename and compute, too; its file source then has a projection.
        let columns = match scan.file_source().projection() {
            Some(projection) => projection
                .as_ref()
                .iter()
                .map(|column| Arc::clone(&column.expr))
                .collect(),
            None => {
                let fields = scan.file_schema().fields().iter().enumerate();
                fields
                    .map(|(index, field)| {
                        Arc::new(Column::new(field.name(), index)) as Arc<dyn PhysicalExpr>
                    })
                    .collect()
            }
        };
        Some(Self {
            scan,
            conditions: Vec::new(),
            columns,
        })
    }

    /// The table's columns that the plan hands on, in order; none when one of them is computed.
    pub(super) fn plain_columns(&self) -> Option<Vec<usize>> {
        let columns = self.columns.iter();
        columns
            .map(|column| Some(column.downcast_ref::<Column>()?.index()))
            .collect()
    }

    /// The conditions, as EXPLAIN shows them.
    pub(super) fn text(&self) -> String {
        let conditions: Vec<String> = self.conditions.iter().map(ToString::to_string).collect();
        conditions.join(", ")
    }

    /// An expression of the plan above over the table's columns.
    pub(super) fn lower(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
        substitute(expr, |index| self.columns.get(index).cloned())
    }
}

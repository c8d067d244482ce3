//! The conditions below an operator as filters of single columns.

use std::sync::Arc;

use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;
use dyno_grouping::Filter;

use super::expression::{Computed, is_text};
use super::shape::Below;

/// All conditions of a plan.
pub(super) struct Conditions {
    /// One filter for each column that conditions are about, those of strings first: a dictionary
    /// without the string asked for rules out a row group.
    pub(super) filters: Vec<Filter>,
    /// The columns that they look at, as [`place`] numbers them.
    pub(super) tested: Vec<usize>,
    /// Whether one of them wants a string to be the same as another, which few rows' are.
    pub(super) exact: bool,
}

impl Conditions {
    /// None when a condition is about several columns, or is more than [`Computed`] can. The names
    /// of columns that are not among `columns` yet are added there.
    pub(super) fn from_filters(below: &Below<'_>, columns: &mut Vec<String>) -> Option<Self> {
        let table = below.scan.file_schema();
        let mut merged: Vec<(usize, Arc<dyn PhysicalExpr>)> = Vec::new();
        for condition in &below.conditions {
            let (column, _) = Computed::from_expression(condition, table)?;
            // Conditions on one column become one filter, which is computed once for each entry of
            // the dictionary. Two filters would walk the dictionary and the codes twice.
            match merged.iter_mut().find(|(other, _)| *other == column) {
                Some((_, all)) => {
                    let (left, right) = (Arc::clone(all), Arc::clone(condition));
                    *all = Arc::new(BinaryExpr::new(left, Operator::And, right));
                }
                None => merged.push((column, Arc::clone(condition))),
            }
        }
        merged.sort_by_key(|(column, _)| !is_text(table.field(*column).data_type()));
        let mut conditions = Self {
            filters: Vec::new(),
            tested: Vec::new(),
            exact: false,
        };
        for (column, condition) in merged {
            let (_, test) = Computed::from_expression(&condition, table)?;
            let column = place(columns, table.field(column).name());
            conditions.tested.push(column);
            conditions.exact |= test.is_equality();
            conditions.filters.push(Filter {
                column,
                test: Arc::new(test),
            });
        }
        Some(conditions)
    }
}

/// The place of a column among those that are read, where it is put when it is new.
pub(super) fn place(columns: &mut Vec<String>, name: &str) -> usize {
    if let Some(index) = columns.iter().position(|column| column == name) {
        return index;
    }
    columns.push(name.to_owned());
    columns.len() - 1
}

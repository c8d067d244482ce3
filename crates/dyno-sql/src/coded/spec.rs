//! What an aggregation of a plan is as a query over codes, and what it answers with.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_plan::aggregates::AggregateExec;
use dyno_grouping::{Key, Query, ValueColumn};

use super::conditions::{Conditions, place};
use super::expression::{Computed, is_key_type};
use super::settle::Rising;
use super::shape::Below;

/// An aggregate function over a value column, or over rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// Rows; what `count` of a column without NULLs is, too.
    Count,
    /// Sum of the value column with this index in [`Query::values`].
    Sum(usize),
    /// Mean of the value column, as a float.
    Avg(usize),
    /// Least value of the value column.
    Min(usize),
    /// Greatest value of the value column.
    Max(usize),
    /// This percentile of the column that [`Spec::spread`] is about.
    Percentile(f64),
}

/// Which groups a sort with a limit above can't do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Top {
    /// Index of the aggregate that is sorted by first.
    pub(super) measure: usize,
    pub(super) descending: bool,
    /// How many rows the limit keeps.
    pub(super) rows: usize,
}

/// A whole aggregation: what is scanned, and what the answer is made of.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    /// What is scanned. Its keys are those of the answer, and behind them the spread column.
    pub(super) query: Query,
    /// Whether the last key is not a key of the answer, but a column whose values must be known one
    /// by one, as percentiles do.
    pub(super) spread: bool,
    pub(super) measures: Vec<Measure>,
    /// The columns of the answer: keys, then measures.
    pub(super) schema: SchemaRef,
    pub(super) top: Option<Top>,
    /// Keys, aggregates and filters, for people.
    pub(super) text: String,
}

impl Spec {
    /// How many keys the answer has.
    pub(super) fn keys(&self) -> usize {
        self.query.keys.len() - usize::from(self.spread)
    }
}

/// A [`Spec`] in the making.
pub(super) struct Translation {
    pub(super) spec: Spec,
    /// Columns that are looked at by code: those of filters and keys.
    pub(super) by_code: BTreeSet<usize>,
    /// For each key of the answer what it is of its column, when that rises with it.
    pub(super) rising: Vec<Option<Rising>>,
}

impl Translation {
    /// None when the aggregation is more than the operator can.
    pub(super) fn from_aggregate(
        aggregate: &AggregateExec,
        schema: SchemaRef,
        below: &Below<'_>,
    ) -> Option<Self> {
        let query = Query {
            columns: Vec::new(),
            filters: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
        };
        let mut translation = Self {
            spec: Spec {
                query,
                spread: false,
                measures: Vec::new(),
                text: text(aggregate, below),
                schema: Arc::clone(&schema),
                top: None,
            },
            by_code: BTreeSet::new(),
            rising: Vec::new(),
        };
        let groups = aggregate.group_expr().expr();
        // An aggregation without keys has one row even over no rows, which groups that arise from
        // rows cannot give.
        if groups.is_empty() {
            return None;
        }
        let columns = &mut translation.spec.query.columns;
        let Conditions {
            filters, tested, ..
        } = Conditions::from_filters(below, columns)?;
        translation.spec.query.filters = filters;
        translation.by_code.extend(tested);
        for ((expr, _), field) in groups.iter().zip(schema.fields()) {
            translation.key(expr, field.data_type(), below)?;
        }
        let mut spread = None;
        for function in aggregate.aggr_expr() {
            let measure = translation.measure(function, below, &mut spread)?;
            translation.spec.measures.push(measure);
        }
        if let Some(column) = spread {
            translation.by_code.insert(column);
            translation.spec.spread = true;
            translation.spec.query.keys.push(Key {
                column,
                mapping: None,
            });
        }
        Some(translation)
    }

    fn key(
        &mut self,
        expr: &Arc<dyn PhysicalExpr>,
        output: &DataType,
        below: &Below<'_>,
    ) -> Option<()> {
        let table = below.scan.file_schema();
        let expr = below.lower(expr)?;
        let (column, mapping) = match expr.downcast_ref::<Column>() {
            Some(column) => {
                let kind = table.fields().get(column.index())?.data_type();
                (kind == output).then_some((column.index(), None))?
            }
            None => {
                let (column, computed) = Computed::from_expression(&expr, table)?;
                (computed.output() == output).then_some((column, Some(computed)))?
            }
        };
        if !is_key_type(output) {
            return None;
        }
        let name = table.field(column).name();
        let mapping = mapping.map(Arc::new);
        let rising = mapping.as_ref().filter(|computed| computed.is_rising());
        self.rising.push(rising.map(|computed| Rising {
            column: name.clone(),
            key: Arc::clone(computed),
        }));
        let column = self.column(name);
        self.by_code.insert(column);
        self.spec.query.keys.push(Key {
            column,
            mapping: mapping.map(|computed| computed as _),
        });
        Some(())
    }

    /// What an aggregate computes; none when the operator can't. The column that values must be
    /// known of one by one is `spread`.
    fn measure(
        &mut self,
        aggregate: &AggregateFunctionExpr,
        below: &Below<'_>,
        spread: &mut Option<usize>,
    ) -> Option<Measure> {
        if aggregate.is_distinct() {
            return None;
        }
        let table = below.scan.file_schema();
        let arguments = aggregate.expressions();
        let function = aggregate.fun().name();
        if function == "percentile_cont" {
            let share = percentile(aggregate, &arguments)?;
            let (name, _) = stored_integer(&below.lower(arguments.first()?)?, below)?;
            let column = self.column(&name);
            // An extra key. A second one would multiply the groups by the values of its column.
            let same = *spread.get_or_insert(column) == column;
            return same.then_some(Measure::Percentile(share));
        }
        let [argument] = arguments.as_slice() else {
            return None;
        };
        if !aggregate.order_bys().is_empty() {
            return None;
        }
        let argument = below.lower(argument)?;
        if function == "count" {
            let counts_rows = match argument.downcast_ref::<Literal>() {
                Some(literal) => !literal.value().is_null(),
                // The readers only know columns without NULLs, and so does the scan's schema.
                None => {
                    argument.downcast_ref::<Column>().is_some() && !argument.nullable(table).ok()?
                }
            };
            return counts_rows.then_some(Measure::Count);
        }
        let (name, kind) = stored_integer(&argument, below)?;
        let output = aggregate.field();
        let output = output.data_type();
        let supported = match function {
            "sum" => output.is_integer() && kind.is_integer(),
            "min" | "max" => *output == kind || (output.is_integer() && kind.is_integer()),
            "avg" => output == &DataType::Float64 && kind.is_integer(),
            _ => false,
        };
        if !supported {
            return None;
        }
        let index = self.value(&name);
        let value = &mut self.spec.query.values[index];
        Some(match function {
            "min" => {
                value.least = true;
                Measure::Min(index)
            }
            "max" => {
                value.most = true;
                Measure::Max(index)
            }
            "sum" => {
                value.sum = true;
                Measure::Sum(index)
            }
            _ => {
                value.sum = true;
                Measure::Avg(index)
            }
        })
    }

    fn column(&mut self, name: &str) -> usize {
        place(&mut self.spec.query.columns, name)
    }

    fn value(&mut self, name: &str) -> usize {
        let column = self.column(name);
        let values = &mut self.spec.query.values;
        if let Some(index) = values.iter().position(|value| value.column == column) {
            return index;
        }
        values.push(ValueColumn {
            column,
            sum: false,
            least: false,
            most: false,
        });
        values.len() - 1
    }
}

/// The column of integers or times that the argument of an aggregate is, and its type. A cast that
/// keeps every value is looked through: to a wider integer, or to a float.
fn stored_integer(
    argument: &Arc<dyn PhysicalExpr>,
    below: &Below<'_>,
) -> Option<(String, DataType)> {
    let table = below.scan.file_schema();
    let stored = match argument.downcast_ref::<CastExpr>() {
        None => argument,
        Some(cast) => {
            let from = cast.expr().data_type(table).ok()?;
            let keeps = match (&from, cast.cast_type()) {
                (from, DataType::Float64) => from.is_integer(),
                (from, DataType::Int64) => from.is_integer() && *from != DataType::UInt64,
                (from, DataType::UInt64) => from.is_unsigned_integer(),
                _ => false,
            };
            keeps.then_some(cast.expr())?
        }
    };
    let column = stored.downcast_ref::<Column>()?;
    let field = table.fields().get(column.index())?;
    let kind = field.data_type();
    let integer = kind.is_integer() || matches!(kind, DataType::Timestamp(_, _));
    integer.then(|| (field.name().clone(), kind.clone()))
}

/// Which percentile is asked for, counted from the least value.
fn percentile(
    aggregate: &AggregateFunctionExpr,
    arguments: &[Arc<dyn PhysicalExpr>],
) -> Option<f64> {
    let [_, share] = arguments else { return None };
    let ScalarValue::Float64(Some(share)) = share.downcast_ref::<Literal>()?.value() else {
        return None;
    };
    let descending = match aggregate.order_bys() {
        [] => false,
        [order] => order.options.descending,
        _ => return None,
    };
    let float = aggregate.field().data_type() == &DataType::Float64;
    let within = float && (0.0..=1.0).contains(share);
    within.then_some(if descending { 1.0 - share } else { *share })
}

fn text(aggregate: &AggregateExec, below: &Below<'_>) -> String {
    let list = |items: Vec<String>| items.join(", ");
    let keys = aggregate.group_expr().expr().iter();
    let keys = list(keys.map(|(expr, _)| expr.to_string()).collect());
    let functions = aggregate.aggr_expr().iter();
    let functions = list(functions.map(|f| f.name().to_owned()).collect());
    let conditions = below.text();
    format!("gby=[{keys}], aggr=[{functions}], filter=[{conditions}]")
}

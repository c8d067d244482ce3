//! Expressions of a plan as functions of one column of the table.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringViewBuilder, UInt64Array,
};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, UInt64Type};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use dyno_grouping::{BoxError, Inputs, Mapping, Outputs, Test};

/// Functions that have a result for every argument. A dictionary has entries that no chosen row
/// uses, and a function that fails on one of them would fail a query that has an answer.
const TOTAL_FUNCTIONS: [&str; 14] = [
    "btrim",
    "character_length",
    "concat",
    "date_part",
    "date_trunc",
    "left",
    "lower",
    "nullif",
    "octet_length",
    "right",
    "starts_with",
    "strpos",
    "substr",
    "upper",
];

/// A function of one column.
#[derive(Debug, Clone)]
pub(super) struct Computed {
    /// Over a batch with that column alone.
    expr: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    output: DataType,
    /// The string that the column is compared with, when that is all there is to do.
    equals: Option<Vec<u8>>,
}

impl Computed {
    /// An expression over the table's columns, when it reads exactly one of them, always has a
    /// result, and always the same: the column's index and the function.
    pub(super) fn from_expression(
        expr: &Arc<dyn PhysicalExpr>,
        table: &Schema,
    ) -> Option<(usize, Self)> {
        let columns = collect_columns(expr);
        let mut columns = columns.iter();
        let (Some(column), None) = (columns.next(), columns.next()) else {
            return None;
        };
        let field = table.fields().get(column.index())?;
        // The function is computed for every entry of a dictionary, also for those that no row
        // uses. If it could fail on one of them, a query that has an answer would fail.
        if !is_total(expr, table) {
            return None;
        }
        let alone: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), 0));
        let rebased = substitute(expr, |_| Some(Arc::clone(&alone)))?;
        let schema = Arc::new(Schema::new(vec![Arc::clone(field)]));
        let output = rebased.data_type(&schema).ok()?;
        let computed = Self {
            equals: equal_to(&rebased),
            expr: rebased,
            schema,
            output,
        };
        // Arguments that make no sense are refused here, for one value as for all.
        let sample = sample(field)?;
        computed.evaluate(sample).ok()?;
        Some((column.index(), computed))
    }

    /// Whether it says that a string is the same as another.
    pub(super) fn is_equality(&self) -> bool {
        self.equals.is_some()
    }

    /// Whether it is a function of numbers or times, of which a greater one never has a lesser
    /// result.
    pub(super) fn is_rising(&self) -> bool {
        if is_text(self.schema.field(0).data_type()) {
            return false;
        }
        let ascending = SortProperties::Ordered(SortOptions::default());
        properties(&self.expr, &self.schema, ascending)
            .is_some_and(|properties| properties.sort_properties == ascending)
    }

    /// The type of the results.
    pub(super) fn output(&self) -> &DataType {
        &self.output
    }

    /// The result for each of some values of the column.
    pub(super) fn evaluate(&self, inputs: ArrayRef) -> Result<ArrayRef> {
        let rows = inputs.len();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![inputs])?;
        self.expr.evaluate(&batch)?.into_array(rows)
    }

    fn inputs(&self, inputs: Inputs<'_>) -> Result<ArrayRef> {
        let kind = self.schema.field(0).data_type();
        match inputs {
            Inputs::Strings(strings, (start, end)) => {
                let mut builder = StringViewBuilder::with_capacity(end - start);
                for code in start..end {
                    let bytes = strings.get(code).unwrap_or_default();
                    builder.append_value(text(self.schema.field(0).name(), bytes)?);
                }
                Ok(cast(&builder.finish(), kind)?)
            }
            Inputs::Ints(values) => ints(values.iter().copied().map(Some), kind),
        }
    }
}

impl Mapping for Computed {
    fn map(&self, inputs: Inputs<'_>, out: &mut Outputs) -> Result<(), BoxError> {
        let results = self.evaluate(self.inputs(inputs)?)?;
        if is_text(results.data_type()) {
            let results = cast(&results, &DataType::Utf8View)?;
            for result in results.as_string_view() {
                out.push(result.map(str::as_bytes));
            }
            return Ok(());
        }
        // Keys are carried as signed integers. A cast would turn values from 2^63 on into NULL, so
        // their bits are kept instead; `ints` turns them back.
        if results.data_type() == &DataType::UInt64 {
            for result in results.as_primitive::<UInt64Type>() {
                out.push_int(result.map(|value| value as i64));
            }
            return Ok(());
        }
        let results = cast(&results, &DataType::Int64)?;
        for result in results.as_primitive::<Int64Type>() {
            out.push_int(result);
        }
        Ok(())
    }
}

impl Test for Computed {
    fn test(&self, inputs: Inputs<'_>, out: &mut Vec<bool>) -> Result<(), BoxError> {
        if let (Some(wanted), Inputs::Strings(strings, (start, end))) = (&self.equals, inputs) {
            // A dictionary of a hundred thousand strings takes a millisecond to become an array.
            let first = out.len();
            out.resize(first + (end - start), false);
            for code in strings.find(wanted) {
                if let Some(at) = code.checked_sub(start).filter(|_| code < end) {
                    out[first + at] = true;
                }
            }
            return Ok(());
        }
        let results = self.evaluate(self.inputs(inputs)?)?;
        let results = results
            .as_boolean_opt()
            .ok_or("a condition that is not a boolean")?;
        // A condition that is neither true nor false chooses no row.
        out.extend(results.iter().map(|result| result == Some(true)));
        Ok(())
    }
}

/// Whether groups can have values of this type: text, or what [`ints`] makes of integers.
pub(super) fn is_key_type(kind: &DataType) -> bool {
    let integer = matches!(
        kind,
        DataType::Boolean | DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _)
    );
    integer || is_text(kind) || kind.is_integer()
}

pub(super) fn is_text(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// An array of this type from integers; unsigned 64-bit ones are taken as bits.
pub(super) fn ints(values: impl Iterator<Item = Option<i64>>, kind: &DataType) -> Result<ArrayRef> {
    if kind == &DataType::UInt64 {
        let values: UInt64Array = values.map(|value| value.map(|bits| bits as u64)).collect();
        return Ok(Arc::new(values));
    }
    let values: Int64Array = values.collect();
    // Dates are 32-bit integers of their own kind to the cast.
    if kind == &DataType::Date32 {
        return Ok(cast(&cast(&values, &DataType::Int32)?, kind)?);
    }
    Ok(cast(&values, kind)?)
}

pub(super) fn text<'b>(column: &str, bytes: &'b [u8]) -> Result<&'b str> {
    std::str::from_utf8(bytes).map_err(|error| {
        DataFusionError::Execution(format!(
            "{column} holds {:?}, which is not UTF-8: {error}",
            String::from_utf8_lossy(bytes)
        ))
    })
}

/// The expression with each column replaced by what `by` says of its index.
pub(super) fn substitute(
    expr: &Arc<dyn PhysicalExpr>,
    by: impl Fn(usize) -> Option<Arc<dyn PhysicalExpr>>,
) -> Option<Arc<dyn PhysicalExpr>> {
    let mut all = true;
    let replaced = Arc::clone(expr).transform_up(|expr| {
        let Some(column) = expr.downcast_ref::<Column>() else {
            return Ok(Transformed::no(expr));
        };
        Ok(match by(column.index()) {
            Some(other) => Transformed::yes(other),
            None => {
                all = false;
                Transformed::no(expr)
            }
        })
    });
    replaced.data().ok().filter(|_| all)
}

/// What DataFusion knows of an expression when its column is sorted. Sums are left out: theirs
/// overflow.
fn properties(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
    sorted: SortProperties,
) -> Option<ExprProperties> {
    let known = ExprProperties::new_unknown();
    let range = Interval::make_unbounded(&expr.data_type(schema).ok()?).ok()?;
    if expr.downcast_ref::<Column>().is_some() {
        return Some(known.with_order(sorted).with_range(range));
    }
    if expr.downcast_ref::<Literal>().is_some() {
        return Some(
            known
                .with_order(SortProperties::Singleton)
                .with_range(range),
        );
    }
    let cast = expr.downcast_ref::<CastExpr>().is_some();
    let call = expr.downcast_ref::<ScalarFunctionExpr>().is_some();
    let children = expr.children().into_iter();
    let children: Vec<ExprProperties> = children
        .map(|child| properties(child, schema, sorted))
        .collect::<Option<_>>()?;
    (cast || call)
        .then(|| expr.get_properties(&children).ok())
        .flatten()
}

/// The string that a column of strings must be equal to, when that is the whole condition.
fn equal_to(condition: &Arc<dyn PhysicalExpr>) -> Option<Vec<u8>> {
    let condition = condition.downcast_ref::<BinaryExpr>()?;
    // `'K1ABC' = callsign` is the same condition as `callsign = 'K1ABC'`.
    let (column, literal) = match (condition.left(), condition.right()) {
        (column, literal) if literal.downcast_ref::<Literal>().is_some() => (column, literal),
        (literal, column) => (column, literal),
    };
    column.downcast_ref::<Column>()?;
    let text = literal.downcast_ref::<Literal>()?.value().try_as_str()??;
    (condition.op() == &Operator::Eq).then(|| text.as_bytes().to_vec())
}

/// One value of a column's type.
fn sample(field: &Field) -> Option<ArrayRef> {
    if is_text(field.data_type()) {
        let text = ScalarValue::Utf8View(Some("JN49cm".to_owned()));
        return cast(&text.to_array().ok()?, field.data_type()).ok();
    }
    ints(std::iter::once(Some(1)), field.data_type()).ok()
}

/// Whether the expression has a result, and always the same one, for each value of its columns.
fn is_total(expr: &Arc<dyn PhysicalExpr>, table: &Schema) -> bool {
    if !expr.children().iter().all(|child| is_total(child, table)) {
        return false;
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return is_total_operator(binary, table);
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let from = cast.expr().data_type(table);
        return from.is_ok_and(|from| keeps_values(&from, cast.cast_type()));
    }
    if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
        return TOTAL_FUNCTIONS.contains(&call.fun().name());
    }
    expr.downcast_ref::<Column>().is_some()
        || expr.downcast_ref::<Literal>().is_some()
        || expr.downcast_ref::<NotExpr>().is_some()
        || expr.downcast_ref::<IsNullExpr>().is_some()
        || expr.downcast_ref::<IsNotNullExpr>().is_some()
        || expr.downcast_ref::<InListExpr>().is_some()
        || expr.downcast_ref::<LikeExpr>().is_some()
}

fn is_total_operator(binary: &BinaryExpr, table: &Schema) -> bool {
    let integers = || {
        let kinds = [binary.left(), binary.right()].map(|side| side.data_type(table));
        kinds
            .iter()
            .all(|kind| kind.as_ref().is_ok_and(DataType::is_integer))
    };
    match binary.op() {
        Operator::Eq
        | Operator::NotEq
        | Operator::Lt
        | Operator::LtEq
        | Operator::Gt
        | Operator::GtEq
        | Operator::And
        | Operator::Or
        | Operator::IsDistinctFrom
        | Operator::IsNotDistinctFrom => true,
        // Integers wrap around where they overflow.
        Operator::Plus | Operator::Minus | Operator::Multiply => integers(),
        Operator::Divide | Operator::Modulo => {
            let divisor = binary.right().downcast_ref::<Literal>();
            let divisor = divisor.and_then(|literal| {
                let wide = literal.value().cast_to(&DataType::Int64).ok()?;
                match wide {
                    ScalarValue::Int64(value) => value,
                    _ => None,
                }
            });
            // A divisor of 0 fails, and so does the least integer divided by -1, which overflows.
            integers() && divisor.is_some_and(|divisor| divisor > 0)
        }
        _ => false,
    }
}

/// Whether a cast between the types succeeds for every value.
fn keeps_values(from: &DataType, to: &DataType) -> bool {
    let width = |kind: &DataType| kind.primitive_width().unwrap_or(0);
    match (from, to) {
        (from, to) if from == to => true,
        (from, to) if is_text(from) => is_text(to),
        (from, DataType::Float64) => from.is_integer(),
        (from, to) if from.is_unsigned_integer() && to.is_integer() => width(to) > width(from),
        (from, to) if from.is_signed_integer() => to.is_signed_integer() && width(to) > width(from),
        (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) => from == to,
        (DataType::Timestamp(_, _), DataType::Date32) => true,
        _ => false,
    }
}

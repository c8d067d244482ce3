//! Maps the types of the specification to those of Arrow.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use dyno_tpch::{Kind, Table};

/// The digits of a decimal, and how many of them stand behind the point.
pub(crate) const DECIMAL: (u8, i8) = (15, 2);

/// The schema of a table. Keys are `Int64`, decimals `Decimal128(15, 2)`, dates `Date32` and text
/// `Utf8`. No column is nullable.
pub fn schema(table: Table) -> SchemaRef {
    let field = |column: &dyno_tpch::Column| Field::new(column.name, data_type(column.kind), false);
    let fields: Vec<Field> = table.columns().iter().map(field).collect();
    Arc::new(Schema::new(fields))
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Key => DataType::Int64,
        Kind::Integer => DataType::Int32,
        Kind::Decimal | Kind::WholeDecimal => DataType::Decimal128(DECIMAL.0, DECIMAL.1),
        Kind::Date => DataType::Date32,
        Kind::Char(_) | Kind::Varchar(_) => DataType::Utf8,
    }
}

//! The types of columns: those that text is read as, and those that a file may have.

use std::sync::Arc;

use anyhow::{Result, bail};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use dyno_tpch::{Kind, Table};

/// Digits of a decimal (clause 1.3.1), two of them after the point.
const PRECISION: u8 = 15;
const SCALE: i8 = 2;

/// What stands behind the last `|` of a line of dbgen.
const END_OF_LINE: &str = "end_of_line";

/// The columns of a table as the specification types them. With `ended`, one more for the empty
/// field that dbgen's last separator makes.
pub fn of_text(table: Table, ended: bool) -> SchemaRef {
    let mut fields: Vec<Field> = table
        .columns()
        .iter()
        .map(|column| Field::new(column.name, data_type(column.kind), false))
        .collect();
    if ended {
        fields.push(Field::new(END_OF_LINE, DataType::Utf8, true));
    }
    Arc::new(Schema::new(fields))
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Key => DataType::Int64,
        Kind::Integer => DataType::Int32,
        Kind::Decimal | Kind::WholeDecimal => DataType::Decimal128(PRECISION, SCALE),
        Kind::Date => DataType::Date32,
        Kind::Char(_) | Kind::Varchar(_) => DataType::Utf8View,
    }
}

/// Checks that a file has the columns of its table in their order, each of a type that can hold
/// exactly what the specification wants.
///
/// # Errors
/// Names the column, what it is and what it should be.
pub fn check(table: Table, found: &Schema) -> Result<()> {
    let columns = table.columns();
    for (place, column) in columns.iter().enumerate() {
        let Some(field) = found.fields().get(place) else {
            bail!("column {} is missing", column.name);
        };
        if field.name() != column.name {
            bail!(
                "column {} is {:?}, not {:?}",
                place + 1,
                field.name(),
                column.name
            );
        }
        if !holds(field.data_type(), column.kind) {
            bail!(
                "column {} has type {}, which is not {}",
                column.name,
                field.data_type(),
                wanted(column.kind)
            );
        }
    }
    if let Some(field) = found.fields().get(columns.len()) {
        bail!("column {:?} is not one of {table}'s", field.name());
    }
    Ok(())
}

fn holds(found: &DataType, kind: Kind) -> bool {
    match kind {
        Kind::Key | Kind::Integer => matches!(found, DataType::Int32 | DataType::Int64),
        Kind::Decimal | Kind::WholeDecimal => matches!(
            found,
            DataType::Decimal32(_, SCALE)
                | DataType::Decimal64(_, SCALE)
                | DataType::Decimal128(_, SCALE)
        ),
        Kind::Date => matches!(found, DataType::Date32),
        Kind::Char(_) | Kind::Varchar(_) => match found {
            DataType::Dictionary(_, values) => holds(values, kind),
            other => other.is_string(),
        },
    }
}

fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Key | Kind::Integer => "an integer of 32 or 64 bits",
        Kind::Decimal | Kind::WholeDecimal => "a decimal with two digits after the point",
        Kind::Date => "a date",
        Kind::Char(_) | Kind::Varchar(_) => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(table: Table, change: impl FnOnce(&mut Vec<Field>)) -> String {
        let schema = of_text(table, false);
        let mut fields: Vec<Field> = schema
            .fields()
            .iter()
            .map(|field| (**field).clone())
            .collect();
        change(&mut fields);
        check(table, &Schema::new(fields)).unwrap_err().to_string()
    }

    #[test]
    fn own_schema_is_accepted() {
        for table in Table::ALL {
            check(table, &of_text(table, false)).unwrap();
        }
    }

    #[test]
    fn other_columns_are_refused_by_name() {
        let missing = refusal(Table::Region, |fields| drop(fields.pop()));
        assert_eq!(missing, "column r_comment is missing");
        let swapped = refusal(Table::Region, |fields| fields.swap(0, 1));
        assert_eq!(swapped, "column 1 is \"r_name\", not \"r_regionkey\"");
        let float = refusal(Table::Orders, |fields| {
            fields[3] = Field::new("o_totalprice", DataType::Float64, false);
        });
        let text = "column o_totalprice has type Float64, which is not a decimal with two digits after the point";
        assert_eq!(float, text);
        let more = refusal(Table::Region, |fields| {
            fields.push(Field::new(END_OF_LINE, DataType::Utf8, true));
        });
        assert_eq!(more, "column \"end_of_line\" is not one of region's");
    }
}

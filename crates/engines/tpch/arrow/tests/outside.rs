//! The batches are those of another generator, value by value.

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::DataType;
use dyno_tpch::{Generator, Scale, Table};
use dyno_tpch_arrow::{Stream, schema};
use tpchgen::generators as outside;

const SCALE: f64 = 0.01;

fn ours(table: Table) -> RecordBatch {
    let generator = Generator::new(Scale::new(SCALE).expect("in range"));
    let units = generator.scale().units(table);
    let stream = Stream::new(&generator, table, 0..units).expect("all units");
    let batches: Vec<RecordBatch> = stream.collect::<Result<_, _>>().expect("batches");
    concat_batches(&schema(table), &batches).expect("one schema")
}

/// Compares the columns; the other one says strings as views.
fn check(table: Table, theirs: impl RecordBatchReader) {
    let theirs_schema = theirs.schema();
    let batches: Vec<RecordBatch> = theirs.collect::<Result<_, _>>().expect("batches");
    let theirs = concat_batches(&theirs_schema, &batches).expect("one schema");
    let ours = ours(table);
    assert_eq!(ours.num_rows(), theirs.num_rows(), "{table}");
    for (at, field) in schema(table).fields().iter().enumerate() {
        assert_eq!(field.name(), theirs_schema.field(at).name());
        let wanted = match theirs_schema.field(at).data_type() {
            DataType::Utf8View => DataType::Utf8,
            other => other.clone(),
        };
        let column = cast(theirs.column(at), &wanted).expect("a view is text");
        assert_eq!(field.data_type(), &wanted, "{}", field.name());
        assert!(ours.column(at) == &column, "{} differs", field.name());
    }
}

#[test]
fn every_table_is_the_same() {
    use tpchgen_arrow::*;
    check(
        Table::Region,
        RegionArrow::new(outside::RegionGenerator::new(SCALE, 1, 1)),
    );
    check(
        Table::Nation,
        NationArrow::new(outside::NationGenerator::new(SCALE, 1, 1)),
    );
    check(
        Table::Part,
        PartArrow::new(outside::PartGenerator::new(SCALE, 1, 1)),
    );
    check(
        Table::Supplier,
        SupplierArrow::new(outside::SupplierGenerator::new(SCALE, 1, 1)),
    );
    check(
        Table::Partsupp,
        PartSuppArrow::new(outside::PartSuppGenerator::new(SCALE, 1, 1)),
    );
    check(
        Table::Customer,
        CustomerArrow::new(outside::CustomerGenerator::new(SCALE, 1, 1)),
    );
    check(
        Table::Orders,
        OrderArrow::new(outside::OrderGenerator::new(SCALE, 1, 1)),
    );
    check(
        Table::Lineitem,
        LineItemArrow::new(outside::LineItemGenerator::new(SCALE, 1, 1)),
    );
}

#[test]
fn units_that_are_not_there_are_refused() {
    let generator = Generator::new(Scale::new(SCALE).expect("in range"));
    let error = Stream::new(&generator, Table::Region, 3..9)
        .err()
        .expect("5 regions")
        .to_string();
    assert_eq!(
        error,
        "units 3..9 of region: it has 5 units at this scale factor"
    );
}

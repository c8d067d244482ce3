//! Every byte against a generator that shares no code with this one.

use dyno_tpch::{Batch, Generator, Scale, Table, TextPool, tbl};
use tpchgen::generators as oracle;

fn ours(scale: f64, table: Table, units_at_once: u64) -> String {
    let generator = Generator::new(Scale::new(scale).expect("a scale factor"));
    let mut batch = Batch::new(table);
    let mut text = Vec::new();
    let units = generator.scale().units(table);
    let mut first = 0;
    while first < units {
        let end = units.min(first + units_at_once);
        generator
            .fill(&mut batch, first..end)
            .expect("units of the table");
        tbl::append(&batch, TextPool::shared(), &mut text);
        first = end;
    }
    String::from_utf8(text).expect("ASCII")
}

fn theirs(scale: f64, table: Table) -> String {
    fn rows<T: std::fmt::Display>(rows: impl IntoIterator<Item = T>) -> String {
        rows.into_iter().map(|row| format!("{row}\n")).collect()
    }
    match table {
        Table::Region => rows(oracle::RegionGenerator::new(scale, 1, 1)),
        Table::Nation => rows(oracle::NationGenerator::new(scale, 1, 1)),
        Table::Part => rows(oracle::PartGenerator::new(scale, 1, 1)),
        Table::Supplier => rows(oracle::SupplierGenerator::new(scale, 1, 1)),
        Table::Partsupp => rows(oracle::PartSuppGenerator::new(scale, 1, 1)),
        Table::Customer => rows(oracle::CustomerGenerator::new(scale, 1, 1)),
        Table::Orders => rows(oracle::OrderGenerator::new(scale, 1, 1)),
        Table::Lineitem => rows(oracle::LineItemGenerator::new(scale, 1, 1)),
    }
}

/// Line by line, so that a difference is shown as the two rows.
fn same(scale: f64, table: Table, units_at_once: u64) {
    let (ours, theirs) = (ours(scale, table, units_at_once), theirs(scale, table));
    for (row, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(ours, theirs, "{table}, row {row}, scale factor {scale}");
    }
    assert_eq!(ours.len(), theirs.len(), "{table}, scale factor {scale}");
}

#[test]
fn the_text_pool_is_theirs() {
    let theirs = tpchgen::text::TextPool::get_or_init_default();
    assert_eq!(theirs.size() as usize, dyno_tpch::POOL_BYTES);
    let theirs = theirs.text(0, theirs.size()).as_bytes();
    let first = std::iter::zip(TextPool::shared().bytes(), theirs).position(|(a, b)| a != b);
    assert_eq!(first, None);
}

#[test]
fn every_table_at_a_thousandth() {
    for table in Table::ALL {
        same(0.001, table, 7);
    }
}

#[test]
fn every_table_at_a_hundredth() {
    for table in Table::ALL {
        same(0.01, table, 1000);
    }
}

#[test]
fn a_fraction_that_is_no_round_number() {
    for table in Table::ALL {
        same(0.037, table, 4096);
    }
}

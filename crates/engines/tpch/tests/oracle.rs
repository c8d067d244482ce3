//! Every byte against a generator that shares no code with this one.

use std::ops::Range;

use dyno_tpch::{Batch, Generator, Scale, Table, TextPool, tbl};
use tpchgen::generators as oracle;

fn ours(scale: f64, table: Table, units_at_once: u64) -> String {
    let units = Scale::new(scale).expect("a scale factor").units(table);
    ours_of(scale, table, 0..units, units_at_once)
}

fn ours_of(scale: f64, table: Table, units: Range<u64>, units_at_once: u64) -> String {
    let generator = Generator::new(Scale::new(scale).expect("a scale factor"));
    let mut batch = Batch::new(table);
    let mut text = Vec::new();
    let mut first = units.start;
    while first < units.end {
        let end = units.end.min(first + units_at_once);
        generator
            .fill(&mut batch, first..end)
            .expect("units of the table");
        tbl::append(&batch, TextPool::shared(), &mut text);
        first = end;
    }
    String::from_utf8(text).expect("ASCII")
}

fn theirs(scale: f64, table: Table, part: i32, parts: i32) -> String {
    fn rows<T: std::fmt::Display>(rows: impl IntoIterator<Item = T>) -> String {
        rows.into_iter().map(|row| format!("{row}\n")).collect()
    }
    match table {
        Table::Region => rows(oracle::RegionGenerator::new(scale, part, parts)),
        Table::Nation => rows(oracle::NationGenerator::new(scale, part, parts)),
        Table::Part => rows(oracle::PartGenerator::new(scale, part, parts)),
        Table::Supplier => rows(oracle::SupplierGenerator::new(scale, part, parts)),
        Table::Partsupp => rows(oracle::PartSuppGenerator::new(scale, part, parts)),
        Table::Customer => rows(oracle::CustomerGenerator::new(scale, part, parts)),
        Table::Orders => rows(oracle::OrderGenerator::new(scale, part, parts)),
        Table::Lineitem => rows(oracle::LineItemGenerator::new(scale, part, parts)),
    }
}

/// Line by line, so that a difference is shown as the two rows.
fn same(scale: f64, table: Table, units_at_once: u64) {
    let (ours, theirs) = (
        ours(scale, table, units_at_once),
        theirs(scale, table, 1, 1),
    );
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

/// Keys are drawn from ranges that grow with the scale factor, and from some width on as dbgen
/// rounds.
#[test]
fn pieces_of_large_scale_factors() {
    const UNITS: u64 = 100;
    for scale in [5.5, 30.0, 300.0, 3000.0, 10_000.0] {
        for table in Table::ALL.into_iter().skip(2) {
            let units = Scale::new(scale).expect("a scale factor").units(table);
            let parts = units / UNITS;
            for part in [1, 2, parts / 3, parts / 2 + 1, parts] {
                let theirs = theirs(scale, table, part as i32, parts as i32);
                let ours = ours_of(scale, table, (part - 1) * UNITS..part * UNITS, 37);
                assert!(ours == theirs, "{table}, part {part} of {parts} at {scale}");
            }
        }
    }
}

//! Any rows, in any order, are the slice of the whole that they should be.

use std::sync::OnceLock;

use dyno_tpch::{Batch, Generator, Scale, Table, TextPool, tbl};
use proptest::prelude::*;

const SCALE: f64 = 0.013;

fn generator() -> &'static Generator {
    static GENERATOR: OnceLock<Generator> = OnceLock::new();
    GENERATOR.get_or_init(|| Generator::new(Scale::new(SCALE).expect("a scale factor")))
}

fn text(batch: &Batch) -> Vec<u8> {
    let mut text = Vec::new();
    tbl::append(batch, TextPool::shared(), &mut text);
    text
}

/// Each table made in one go, cut into rows.
fn whole(table: Table) -> &'static Vec<Vec<u8>> {
    static WHOLE: [OnceLock<Vec<Vec<u8>>>; 8] = [const { OnceLock::new() }; 8];
    WHOLE[table as usize].get_or_init(|| {
        let mut batch = Batch::new(table);
        let units = 0..generator().scale().units(table);
        generator().fill(&mut batch, units).expect("all units");
        let text = text(&batch);
        text.split_inclusive(|&byte| byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    })
}

fn any_table() -> impl Strategy<Value = Table> {
    proptest::sample::select(Table::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_the_slice_of_the_whole(table in any_table(), a in 0.0..=1.0, b in 0.0..=1.0) {
        let whole = whole(table);
        let place = |share: f64| (share * whole.len() as f64) as usize;
        let (start, end) = (place(f64::min(a, b)), place(f64::max(a, b)));
        let mut batch = Batch::new(table);
        generator().fill_rows(&mut batch, start as u64..end as u64).expect("rows of the table");
        prop_assert_eq!(batch.rows(), end - start);
        prop_assert!(text(&batch) == whole[start..end].concat());
    }

    #[test]
    fn parts_put_together_are_the_whole(table in any_table(), parts in 1u64..40) {
        let mut batch = Batch::new(table);
        let mut joined = Vec::new();
        for part in 1..=parts {
            let units = generator().part(table, part, parts).expect("a part");
            generator().fill(&mut batch, units).expect("its units");
            joined.extend(text(&batch));
        }
        prop_assert!(joined == whole(table).concat());
    }
}

#[test]
fn a_used_batch_shows_nothing_of_what_was_in_it() {
    for table in Table::ALL {
        let units = generator().scale().units(table);
        let mut used = Batch::new(table);
        generator().fill(&mut used, 0..units).expect("all units");
        for units in [units - 1..units, 0..1, 2..5] {
            let mut fresh = Batch::new(table);
            generator().fill(&mut fresh, units.clone()).expect("units");
            generator().fill(&mut used, units).expect("units");
            assert!(text(&used) == text(&fresh), "{table}");
        }
    }
}

#[test]
fn rows_of_the_specification() {
    let rows = |scale, table| Generator::new(Scale::new(scale).expect("in range")).rows(table);
    assert_eq!(rows(0.001, Table::Lineitem), 6005);
    assert_eq!(rows(0.01, Table::Lineitem), 60_175);
    assert_eq!(rows(0.1, Table::Lineitem), 600_572);
    assert_eq!(rows(1.0, Table::Lineitem), 6_001_215);
    assert_eq!(rows(10.0, Table::Lineitem), 59_986_052);
    assert_eq!(rows(10.0, Table::Partsupp), 8_000_000);
    assert_eq!(rows(10.0, Table::Nation), 25);
    let sum: u64 = Table::ALL.iter().map(|&table| rows(1.0, table)).sum();
    assert_eq!(sum, 8_661_245);
}

#[test]
fn what_a_table_does_not_have_is_refused() {
    let generator = generator();
    let mut batch = Batch::new(Table::Orders);
    let error = generator
        .fill(&mut batch, 19_000..19_501)
        .expect_err("past the end");
    let text = "units 19000..19501 of orders: it has 19500 units at this scale factor";
    assert_eq!(error.to_string(), text);
    assert!(generator.fill_rows(&mut batch, 0..19_501).is_err());
    assert!(generator.part(Table::Orders, 0, 4).is_err());
    assert!(generator.part(Table::Orders, 5, 4).is_err());
    let error = "lineitems".parse::<Table>().expect_err("no such table");
    assert!(
        error
            .to_string()
            .starts_with("table \"lineitems\": not a table of TPC-H")
    );
}

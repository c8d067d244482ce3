//! Whole tables against the SHA-1 sums of what dbgen itself writes.
//!
//! The sums were made with dbgen by the tpchgen-rs project, which publishes them in its TESTING.md.
//! The large tables take long without a release build; run them with `cargo test --release -p
//! dyno-tpch --test checksums -- --include-ignored`.

use dyno_tpch::{Batch, Generator, Scale, Table, TextPool, tbl};
use sha1::{Digest, Sha1};

fn check(scale: f64, sums: &[(Table, &str)]) {
    let generator = Generator::new(Scale::new(scale).expect("a scale factor"));
    let mut text = Vec::new();
    for &(table, expected) in sums {
        let mut batch = Batch::new(table);
        let mut sum = Sha1::new();
        let units = generator.scale().units(table);
        let mut first = 0;
        while first < units {
            let end = units.min(first + 4096);
            generator
                .fill(&mut batch, first..end)
                .expect("units of the table");
            text.clear();
            tbl::append(&batch, TextPool::shared(), &mut text);
            sum.update(&text);
            first = end;
        }
        assert_eq!(
            format!("{:x}", sum.finalize()),
            expected,
            "{table} at {scale}"
        );
    }
}

#[test]
fn small_tables_at_1() {
    let sums = [
        (Table::Region, "ac61de9604337e791f1bdbcef8f0cdcc21b01514"),
        (Table::Nation, "f361dffd3d927f5aa64e71cff91458fb5ea1315f"),
        (Table::Supplier, "baad047476a2720d99b707b6f7a7c9e50c170d5a"),
        (Table::Customer, "bee45e9c240e87d63786324696b1babad18a5e0b"),
        (Table::Part, "06615f7433806c06162af49c7bc27166c64a31d6"),
    ];
    check(1.0, &sums);
}

#[test]
fn small_tables_at_10() {
    let sums = [
        (Table::Nation, "f361dffd3d927f5aa64e71cff91458fb5ea1315f"),
        (Table::Supplier, "42a76ba965916326e52adca1725ed9ee18b8e61b"),
    ];
    check(10.0, &sums);
}

#[test]
#[ignore = "a gigabyte of text"]
fn large_tables_at_1() {
    let sums = [
        (Table::Partsupp, "db0fcb935904765a9085505b5feb5260752f8bf3"),
        (Table::Orders, "00d790a08a116feec992cea14272a4f1e5c55925"),
        (Table::Lineitem, "4802b21c9975d965aa11893214a879df0d8d9e01"),
    ];
    check(1.0, &sums);
}

#[test]
#[ignore = "ten gigabytes of text"]
fn large_tables_at_10() {
    let sums = [
        (Table::Customer, "b717482bde38c8312cf232e7ca73aab62f5e1eca"),
        (Table::Part, "efb2a169b6ce80d8ed3989147e8d70e7f2a38d6c"),
        (Table::Partsupp, "eae140257dc91ba3b4a929c32ebe3d08f3605618"),
        (Table::Orders, "dddffc12e235da9cd8d17584dc1eab237654cb0f"),
        (Table::Lineitem, "c3f5d0218b6623125887d7021922d1e91da11613"),
    ];
    check(10.0, &sums);
}

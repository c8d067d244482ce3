//! `tpch verify` finds what is wrong, and nothing where nothing is.

use std::fs;
use std::path::Path;

use crate::tpch_tables::{tpch, write_csv, write_orc, write_parquet, write_tbl};

const SCALE: f64 = 0.002;

/// Changes the lines of one table of dbgen's form, and gives the checks that break: table, rule,
/// what is shown.
fn broken_by(table: &str, change: impl FnOnce(&mut Vec<String>)) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    write_tbl(directory.path(), SCALE);
    let path = directory.path().join(format!("{table}.tbl"));
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let (out, good) = tpch("verify", directory.path(), &[]).unwrap();
    let broken = out.lines().filter(|line| !line.starts_with("ok "));
    let broken: Vec<String> = broken.map(|line| line.trim().to_owned()).collect();
    assert_eq!(good, broken.len() == 1, "{out}");
    broken
}

/// The line in place of one field of a line.
fn with(line: &str, field: usize, value: &str) -> String {
    let mut fields: Vec<&str> = line.split('|').collect();
    fields[field] = value;
    fields.join("|")
}

fn check(broken: &[String], expected: &[&str]) {
    let found: Vec<&str> = broken.iter().map(String::as_str).collect();
    assert_eq!(found, expected, "{found:#?}");
}

fn good(directory: &Path, more: &[&str]) -> String {
    let (out, good) = tpch("verify", directory, more).unwrap();
    assert!(good, "{out}");
    out.lines().last().unwrap().to_owned()
}

#[test]
fn every_format_is_good() {
    let summary = "scale factor 0.002: 86 checks good, 0 broken, 0 not possible";
    let tbl = tempfile::tempdir().unwrap();
    write_tbl(tbl.path(), SCALE);
    assert_eq!(good(tbl.path(), &[]), summary);
    let parquet = tempfile::tempdir().unwrap();
    write_parquet(tbl.path(), parquet.path());
    assert_eq!(good(parquet.path(), &["--threads", "1"]), summary);
    let orc = tempfile::tempdir().unwrap();
    write_orc(orc.path(), SCALE);
    assert_eq!(good(orc.path(), &["--threads", "3"]), summary);
    let csv = tempfile::tempdir().unwrap();
    write_csv(csv.path(), SCALE);
    assert_eq!(good(csv.path(), &["--sf", "0.002"]), summary);
}

#[test]
fn the_order_of_rows_is_free() {
    let broken = broken_by("orders", |lines| lines.reverse());
    check(
        &broken,
        &["scale factor 0.002: 86 checks good, 0 broken, 0 not possible"],
    );
}

#[test]
fn a_changed_tax_shows_in_the_total_and_in_the_values() {
    let broken = broken_by("lineitem", |lines| lines[6] = with(&lines[6], 7, "0.08"));
    check(
        &broken,
        &[
            "BROKEN  orders    o_totalprice and o_orderstatus are what the lines make (clause 4.2.3): 1 row is not so",
            "o_orderkey 2, o_totalprice 44417.07, sum_of_lines 45686.13, o_orderstatus O, open 1, lines 1",
            "BROKEN  lineitem  all values are the generator's, by their sums",
            "first in a block of 4096 keys from l_orderkey 1 to 12000, in l_tax",
            "l_orderkey 2, l_linenumber 1: l_tax is 0.08, not 0.05",
            "scale factor 0.002: 84 checks good, 2 broken, 0 not possible",
        ],
    );
}

#[test]
fn a_letter_of_a_comment_shows_in_the_values() {
    let broken = broken_by("customer", |lines| {
        lines[41] = lines[41].replacen("ly ", "lu ", 1)
    });
    assert_eq!(broken.len(), 4, "{broken:#?}");
    assert!(
        broken[0].contains("customer  all values are the generator's"),
        "{broken:#?}"
    );
    assert!(broken[1].ends_with("in c_comment"), "{broken:#?}");
    assert!(
        broken[2].starts_with("c_custkey 42: c_comment is "),
        "{broken:#?}"
    );
}

#[test]
fn a_row_that_is_missing_is_named() {
    let broken = broken_by("lineitem", |lines| drop(lines.remove(6)));
    check(
        &broken,
        &[
            "BROKEN  orders    o_totalprice and o_orderstatus are what the lines make (clause 4.2.3): 1 row is not so",
            "o_orderkey 2, o_totalprice 44417.07, sum_of_lines NULL, o_orderstatus O, open NULL, lines NULL",
            "BROKEN  lineitem  there are 11957 rows (clause 4.2.5)",
            "there are 11956",
            "BROKEN  lineitem  all values are the generator's, by their sums",
            "first in a block of 4096 keys from l_orderkey 1 to 12000, in all columns",
            "l_orderkey 2, l_linenumber 1: the row is missing",
            "scale factor 0.002: 83 checks good, 3 broken, 0 not possible",
        ],
    );
}

#[test]
fn a_row_that_is_there_twice_is_named() {
    let broken = broken_by("orders", |lines| lines.push(lines[33].clone()));
    check(
        &broken,
        &[
            "BROKEN  orders    there are 3000 rows (clause 4.2.5)",
            "there are 3001",
            "BROKEN  orders    o_orderkey: no key is there twice: 1 row is not so",
            "o_orderkey 130, times 2",
            "BROKEN  orders    all values are the generator's, by their sums",
            "first in a block of 4096 keys from o_orderkey 1 to 12000, in all columns",
            "o_orderkey 130: a row too many",
            "scale factor 0.002: 83 checks good, 3 broken, 0 not possible",
        ],
    );
}

#[test]
fn a_customer_who_may_not_order_is_found() {
    let broken = broken_by("orders", |lines| lines[2] = with(&lines[2], 1, "3"));
    assert!(
        broken[0].contains("multiple of three has an order"),
        "{broken:#?}"
    );
    assert_eq!(broken[1], "o_orderkey 3, o_custkey 3");
    assert!(
        broken
            .iter()
            .any(|line| line.starts_with("o_orderkey 3: o_custkey is 3, not "))
    );
}

#[test]
fn a_supplier_that_does_not_have_the_part_is_found() {
    let broken = broken_by("lineitem", |lines| lines[0] = with(&lines[0], 2, "20"));
    assert_eq!(broken.len(), 6, "{broken:#?}");
    assert!(
        broken[0].contains("l_partkey, l_suppkey is in partsupp: 1 row"),
        "{broken:#?}"
    );
    assert!(
        broken[1].starts_with("l_orderkey 1, l_linenumber 1, l_partkey "),
        "{broken:#?}"
    );
}

#[test]
fn words_and_keys_that_do_not_exist_are_found() {
    let broken = broken_by("part", |lines| lines[4] = with(&lines[4], 6, "PAPER BAG"));
    assert!(
        broken[0].contains("p_container is one of the 40"),
        "{broken:#?}"
    );
    assert_eq!(broken[1], "p_partkey 5, p_container PAPER BAG");
    let broken = broken_by("orders", |lines| lines[6] = with(&lines[6], 0, "8"));
    let says = |words: &str| broken.iter().any(|line| line.contains(words));
    assert!(says(
        "orders    o_orderkey is from 1 to 12000, eight used of every 32"
    ));
    assert!(
        says("lineitem  l_orderkey is in orders: 7 rows are not so"),
        "{broken:#?}"
    );
    assert!(says("o_orderkey 7: the row is missing"), "{broken:#?}");
}

#[test]
fn tables_that_are_not_there_are_named() {
    let directory = tempfile::tempdir().unwrap();
    write_tbl(directory.path(), SCALE);
    fs::remove_file(directory.path().join("orders.tbl")).unwrap();
    let (out, is_good) = tpch("verify", directory.path(), &[]).unwrap();
    assert!(!is_good);
    assert!(
        out.contains("BROKEN  orders    the table is there\n"),
        "{out}"
    );
    assert!(
        out.contains("unknown lineitem  l_orderkey is in orders: there is no table orders"),
        "{out}"
    );
    let only = good(directory.path(), &["--tables", "part,lineitem"]);
    assert_eq!(
        only,
        "scale factor 0.002: 29 checks good, 0 broken, 2 not possible"
    );
    for table in ["part", "partsupp", "customer", "supplier"] {
        fs::remove_file(directory.path().join(format!("{table}.tbl"))).unwrap();
    }
    let error = tpch("verify", directory.path(), &[]).unwrap_err();
    assert!(error.ends_with("say it with --sf"), "{error}");
}

#[test]
fn json_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    write_tbl(directory.path(), SCALE);
    let (out, is_good) = tpch(
        "verify",
        directory.path(),
        &["--json", "--tables", "nation"],
    )
    .unwrap();
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(is_good);
    assert_eq!(report["good"], 7);
    assert_eq!(report["checks"][0]["state"], "good");
    assert_eq!(report["checks"][0]["table"], "nation");
}

#[test]
fn files_with_other_columns_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("region.csv"),
        "r_regionkey,r_comment,r_name\n",
    )
    .unwrap();
    let error = tpch("verify", directory.path(), &["--sf", "1"]).unwrap_err();
    assert!(
        error.ends_with(
            "the header is \"r_regionkey,r_comment,r_name\", not \"r_regionkey,r_name,r_comment\""
        ),
        "{error}"
    );
    fs::remove_file(directory.path().join("region.csv")).unwrap();
    fs::write(directory.path().join("region.orc"), "ORC").unwrap();
    let error = tpch("verify", directory.path(), &["--sf", "1"]).unwrap_err();
    assert!(error.contains("cannot open table region"), "{error}");
    fs::remove_file(directory.path().join("region.orc")).unwrap();
    write_orc(directory.path(), SCALE);
    let (region, nation) = ("region.orc", "nation.orc");
    fs::copy(directory.path().join(nation), directory.path().join(region)).unwrap();
    let error = tpch("verify", directory.path(), &["--sf", "1"]).unwrap_err();
    assert!(
        error.contains("column 1 is \"n_nationkey\", not \"r_regionkey\""),
        "{error}"
    );
}

//! Figures of documents held against committed records.

use std::path::{Path, PathBuf};

use dyno_report::{BrokenClaim, CheckedClaim, ClaimedRecords, renewed};

const LOAD: &str = "results/epyc-2-cores/2026-11-21-wspr-full#load-gz-2";

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn check(text: &str) -> Result<Vec<CheckedClaim>, Vec<BrokenClaim>> {
    ClaimedRecords::below(&tree()).check(text)
}

fn claim(binding: &str, written: &str) -> String {
    format!("<!-- dyno:claim {binding} -->{written}<!-- /claim -->")
}

/// What the record says in the form of `written`.
fn now(keys: &str, written: &str) -> String {
    let claims = check(&claim(&format!("{LOAD} {keys}"), written)).unwrap();
    assert_eq!(claims[0].unfit, None, "{claims:?}");
    claims[0].now.clone()
}

fn reason(binding: &str) -> String {
    check(&claim(binding, "1")).unwrap_err()[0].reason.clone()
}

#[test]
fn every_part_of_a_figure_can_be_bound() {
    // As `dyno report` prints them for this record, and in another writer's form.
    for (keys, written, expected) in [
        ("", "", "9.61 M rows/s"),
        ("", "9 million", "10 million"),
        ("show=value", "9,000.0 k rows/s", "9,610.2 k rows/s"),
        ("show=spread", "", "±9.5%"),
        ("show=n", "5", "6"),
        ("show=share", "30%", "37%"),
        ("vs=chdb", "3", "4"),
        ("vs=chdb", "3.0×", "4.3×"),
        ("vs=best-peer", "", "4.26×"),
        ("show=ratio", "3.90 times", "4.26 times"),
        ("vs=chdb show=low", "1.00", "3.63"),
        ("vs=best-peer show=high", "1.00", "4.40"),
        ("show=verdict", "slower", "faster"),
        ("system=chdb", "", "2.25 M rows/s"),
        (
            "show=row",
            "",
            "9.61 M rows/s ±9.5%, n = 6 | chdb 2.25 M rows/s | 4.26× (3.63 .. 4.40) | 37% of inflate-1 | faster",
        ),
    ] {
        assert_eq!(now(keys, written), expected, "{keys} {written:?}");
    }
    let of_itself = now("system=chdb vs=dyno", "0.000");
    assert!(
        (0.23..0.24).contains(&of_itself.parse::<f64>().unwrap()),
        "{of_itself}"
    );
}

#[test]
fn writing_changes_the_figures_and_nothing_else() {
    let right = claim(LOAD, "9.61 M rows/s");
    let text = format!(
        "a {right} b\n{} c\n",
        claim(&format!("{LOAD} vs=chdb"), "\n3.9 ")
    );
    let claims = check(&text).unwrap();
    let held: Vec<bool> = claims.iter().map(CheckedClaim::holds).collect();
    assert_eq!((held, claims[1].line), (vec![true, false], 2));
    assert!(
        claims[1]
            .of
            .contains("ratio of load-gz-2 (throughput, dyno against chdb) in results")
    );
    let written = renewed(&text, &claims);
    assert_eq!(written, text.replace("3.9", "4.3"));
    assert!(check(&written).unwrap().iter().all(CheckedClaim::holds));
}

#[test]
fn what_is_not_in_the_record_is_named() {
    assert!(reason("results/nowhere#load").contains("results/nowhere"));
    let (record, _) = LOAD.split_once('#').unwrap();
    assert!(reason(&format!("{record}#lod")).contains("has no case lod"));
    assert!(reason(&format!("{LOAD} system=x")).contains("has no throughput of x"));
    assert!(reason(&format!("{LOAD} metric=x")).contains("has no x of dyno"));
    assert!(reason(&format!("{LOAD} vs=x")).contains("shares no block with x"));
}

#[test]
fn a_figure_that_may_not_be_quoted_does_not_hold() {
    for (binding, why) in [
        (
            "results/epyc-2-cores/2026-11-22-k2-quick#calls-1",
            "withdrawn",
        ),
        (
            "crates/lab/record/tests/fixtures/run-v1#load-gz-2",
            "cannot be built again",
        ),
    ] {
        let claims = check(&claim(binding, "")).unwrap();
        let held = check(&claim(binding, &claims[0].now)).unwrap();
        let unfit = held[0].unfit.clone().unwrap();
        assert!(
            unfit.contains(why) && !held[0].holds(),
            "{binding}: {unfit}"
        );
    }
}

/// Whatever is written, what is put in its place holds.
#[test]
fn what_was_written_by_the_program_holds() {
    for written in [
        "",
        "x",
        "9",
        "9.",
        ".5",
        "9,,1",
        "±",
        "±3%",
        "1e6",
        "-4",
        "9.6 Mrows/s",
        "Ω",
    ] {
        for keys in [
            "",
            "vs=chdb",
            "show=n",
            "show=share",
            "show=spread",
            "show=verdict",
        ] {
            let text = claim(&format!("{LOAD} {keys}"), written);
            let text = renewed(&text, &check(&text).unwrap());
            assert!(check(&text).unwrap()[0].holds(), "{text}");
        }
    }
}

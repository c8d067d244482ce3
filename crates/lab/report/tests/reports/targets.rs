//! Targets of suites: met, missed, or not judged.

use crate::made_up;

use dyno_record::{StoredRun, Target};
use dyno_report::{Report, TargetOutcome, build_stored, headline};

const CASE: &str = "load-csv-2";

/// The made-up run, in which `dyno` loads 5.3 times as fast as its peer and at 61% of the limit.
fn with_target(of: &str, at_least: f64) -> StoredRun {
    let mut stored = made_up::stored();
    let cases = &mut stored.run.plan.cases;
    let case = cases.iter_mut().find(|case| case.name == CASE).unwrap();
    let of = of.to_owned();
    case.target = Some(Target { of, at_least });
    stored
}

fn outcome(report: &Report) -> &TargetOutcome {
    let case = report.cases.iter().find(|case| case.plan.name == CASE);
    case.unwrap().target.as_ref().unwrap()
}

fn check(of: &str, at_least: f64, state: &str, named: &str) {
    let report = build_stored(&with_target(of, at_least));
    let outcome = outcome(&report);
    assert_eq!(
        (outcome.state, outcome.of.as_str()),
        (state, named),
        "{outcome:?}"
    );
    let page = report.to_markdown().unwrap();
    assert!(
        page.contains(&format!("target of {CASE}: at least ")),
        "{page}"
    );
    assert!(page.contains(&format!("| {state} |")) || page.contains(&format!("| **{state}** |")));
    assert!(report.to_html().unwrap().contains(&format!("is {state}")));
}

#[test]
fn the_whole_interval_decides() {
    check("peer", 4.0, "met", "duckdb");
    check("duckdb", 4.0, "met", "duckdb");
    check("peer", 7.0, "missed", "duckdb");
    check("limit", 0.5, "met", "inflate-1");
    check("limit", 0.9, "missed", "inflate-1");
    // Exactly what was reached lies inside the interval.
    let reached = outcome(&build_stored(&with_target("peer", 1.0)))
        .value
        .unwrap();
    check("peer", reached, "not judged", "duckdb");
}

#[test]
fn page_one_counts_the_targets() {
    let report = build_stored(&with_target("peer", 7.0));
    let said = headline(&report).summary;
    assert!(
        said.ends_with(" Of the targets that its suite sets, 0 met, 1 missed, 0 not judged."),
        "{said}"
    );
    let none = headline(&build_stored(&made_up::stored())).summary;
    assert!(!none.contains("Targets"), "{none}");
}

#[test]
fn what_was_not_measured_often_enough_or_not_at_all_is_not_judged() {
    let mut few = with_target("peer", 0.5);
    few.samples.retain(|sample| sample.block < 3);
    let report = build_stored(&few);
    assert_eq!(outcome(&report).state, "not judged");
    assert!(outcome(&report).value.is_some(), "the ratio is still shown");
    let mut few = with_target("limit", 0.1);
    few.samples.retain(|sample| sample.block < 3);
    assert_eq!(
        outcome(&build_stored(&few)).reason,
        "n = 3, and 5 are needed"
    );

    let mut alone = with_target("peer", 0.5);
    alone.samples.retain(|sample| sample.system == "dyno");
    let report = build_stored(&alone);
    assert_eq!(outcome(&report).state, "not judged");
    assert_eq!(outcome(&report).value, None);
    assert_eq!(
        outcome(&report).reason,
        "no peer was measured in the same blocks"
    );

    let mut unlimited = with_target("limit", 0.5);
    unlimited.run.limits.clear();
    let report = build_stored(&unlimited);
    assert!(
        outcome(&report)
            .reason
            .contains("the limit was not measured")
    );
}

//! Rankings of made-up and of committed records.

use crate::made_up;

use std::path::Path;

use dyno_record::{Experiment, Gives, RunDir};
use dyno_report::{Ranking, Report, build, build_stored, rank};

fn made(fingerprint: &str) -> (String, Report) {
    let mut stored = made_up::stored();
    stored.run.machine.fingerprint = fingerprint.into();
    ("runs/made".into(), build(&stored.run, &stored.samples))
}

fn committed(name: &str) -> (String, Report) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results");
    (
        name.into(),
        build_stored(&RunDir::open(&root.join(name)).unwrap()),
    )
}

fn places(ranking: &Ranking, case: &str) -> Vec<(String, String, usize, usize)> {
    let case = ranking
        .cases
        .iter()
        .find(|known| known.case == case)
        .unwrap();
    let row = |row: &dyno_report::RankedRow| {
        let system = row.figure.system.clone();
        (row.mark.clone(), system, row.place_from, row.place_to)
    };
    case.rows.iter().map(row).collect()
}

#[test]
fn systems_are_ordered_by_what_verdicts_show() {
    let records = [committed("epyc-2-cores/2026-11-21-wspr-full")];
    let ranking = rank(&records, "duckdb").unwrap();
    let place = |system: &str, from, to| ("A1".to_owned(), system.to_owned(), from, to);
    let judged = [
        place("dyno", 1, 1),
        place("chdb", 2, 2),
        place("duckdb", 3, 3),
    ];
    assert_eq!(places(&ranking, "load-gz-2"), judged);
    // No control arm ran in this case, so that every place is open.
    let open = places(&ranking, "load-gz-1");
    assert!(
        open.iter().all(|(_, _, from, to)| (*from, *to) == (1, 3)),
        "{open:?}"
    );
    let rows = &ranking.cases[0].rows;
    let to_baseline = rows[0].to_baseline.as_ref().unwrap();
    assert!(to_baseline.ratio > 5.0 && to_baseline.verdict == "faster");
    assert!(rows[2].to_baseline.is_none() && rows[2].figure.share_of_limit.is_some());
}

#[test]
fn machines_are_marked_and_places_are_within_a_record() {
    let records = [made("a"), made("b"), made("a")];
    let ranking = rank(&records, "dyno").unwrap();
    let marks: Vec<&str> = ranking
        .records
        .iter()
        .map(|record| record.mark.as_str())
        .collect();
    assert_eq!(marks, ["A1", "B2", "A3"]);
    let places = places(&ranking, "load-gz-2");
    let first: Vec<_> = places.iter().filter(|(mark, ..)| mark == "B2").collect();
    assert_eq!((places.len(), first.len()), (9, 3), "{places:?}");
    assert!(places.iter().all(|(_, _, from, to)| from <= to && *to <= 3));
    let text = ranking.to_markdown();
    assert!(text.contains("- **B2**: Example 9000") && text.contains("| B2 | "));
    assert!(!text.contains("<img"), "{text}");
}

#[test]
fn what_cannot_be_ranked_is_named() {
    let wspr = made("a");
    let mut other = made("a");
    other.1.run.plan.suite = "k2".into();
    let refused = rank(&[made("a"), other], "dyno").unwrap_err();
    assert!(refused.contains("several suites (k2, wspr)"), "{refused}");
    let refused = rank(&[wspr], "oracle").unwrap_err();
    assert!(
        refused.contains("no record has a figure of oracle; there are: chdb"),
        "{refused}"
    );
    let withdrawn = rank(&[committed("epyc-2-cores/2026-11-22-k2-quick")], "dyno").unwrap();
    assert!(withdrawn.cases.is_empty());
    assert!(withdrawn.to_markdown().contains("A1: calls-1 is withdrawn"));
}

#[test]
fn a_case_with_other_parameters_in_one_record_is_left_out_and_named() {
    let mut stored = made_up::stored();
    let params = &mut stored.run.plan.cases[0].params;
    params.insert("workers".into(), 4.into());
    let other = ("runs/other".to_owned(), build(&stored.run, &stored.samples));
    let ranking = rank(&[made("a"), other], "dyno").unwrap();
    let cases: Vec<&str> = ranking
        .cases
        .iter()
        .map(|case| case.case.as_str())
        .collect();
    assert!(!cases.contains(&"load-gz-2"), "{cases:?}");
    assert!(cases.contains(&"load-csv-2"), "{cases:?}");
    assert_eq!(
        ranking.notes,
        ["load-gz-2 is left out: its parameters differ between the records"]
    );
}

#[test]
fn an_experiment_has_no_place() {
    let mut stored = made_up::stored();
    let case = &mut stored.run.plan.cases[0];
    let experiment = Experiment {
        resource: "processor".into(),
        change: "one core fewer".into(),
        gives: Gives::Less,
        around: None,
        keeps_nothing: false,
    };
    case.variants.insert("chdb".into(), Default::default());
    case.experiments.insert("chdb".into(), experiment);
    let record = ("runs/why".to_owned(), build(&stored.run, &stored.samples));
    let places = places(&rank(&[record], "dyno").unwrap(), "load-gz-2");
    let systems: Vec<&str> = places.iter().map(|place| place.1.as_str()).collect();
    assert_eq!(systems, ["dyno", "duckdb"]);
    assert!(places.iter().all(|place| place.3 <= 2), "{places:?}");
}

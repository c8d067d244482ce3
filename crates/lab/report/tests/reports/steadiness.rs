//! The rate of a service counts when its samples show that it stayed level, and not before.

use crate::made_up::stored;
use dyno_record::{Load, Outcome, Size, StoredRun, Table, TableKind, TableRow, Target};
use dyno_report::{
    Answer, CompareRules, FilledTable, Report, Severity, build_stored, compare, headline,
    nothing_to_compare,
};

const CASE: &str = "load-csv-2";

/// The made-up run with one case as a service, whose `system` has these windows of half a second in
/// each sample; all others have 40 level ones.
fn service(system: &str, windows: impl Fn(usize) -> Vec<f64>) -> StoredRun {
    let mut run = stored();
    let case = run.run.plan.cases.iter_mut().find(|c| c.name == CASE);
    case.unwrap().load = Load::Service;
    let samples = run.samples.iter_mut().filter(|s| s.case == CASE);
    for (number, sample) in samples.enumerate() {
        sample.window_s = Some(0.5);
        sample.windows = if sample.system == system {
            windows(number)
        } else {
            level(number, 40)
        };
    }
    run
}

fn level(number: usize, count: usize) -> Vec<f64> {
    let noise = |i: usize| ((i * 7 + number * 3) % 11) as f64 / 11.0 - 0.5;
    (0..count)
        .map(|i| 6.1e6 * (1.0 + 0.02 * noise(i)))
        .collect()
}

fn falling(number: usize) -> Vec<f64> {
    let windows = level(number, 40);
    let at = |i: usize| 1.0 / (1.0 + 3.0 * i as f64 / 39.0);
    windows
        .iter()
        .enumerate()
        .map(|(i, rate)| rate * at(i))
        .collect()
}

fn rising(number: usize) -> Vec<f64> {
    falling(number).into_iter().rev().collect()
}

/// Level, but with so much noise that no change would be seen.
fn uneven(number: usize) -> Vec<f64> {
    let level = level(number, 40);
    level
        .iter()
        .map(|rate| 6.1e6 + 80.0 * (rate - 6.1e6))
        .collect()
}

fn cells(report: &Report) -> [String; 7] {
    let rows = headline(report).rows;
    rows.into_iter()
        .find(|row| row.cells[0] == CASE)
        .unwrap()
        .cells
}

fn table(run: &mut StoredRun, kind: TableKind, columns: &[&str]) -> FilledTable {
    run.run.plan.tables = vec![Table {
        title: "T".into(),
        kind,
        columns: columns.iter().map(|c| (*c).to_owned()).collect(),
        rows: vec![TableRow {
            label: "csv".into(),
            case: CASE.into(),
            system: None,
            metric: None,
            seed: Vec::new(),
        }],
        ranked: false,
        ranked_by: None,
    }];
    build_stored(run).tables.remove(0)
}

#[test]
fn a_level_rate_is_judged_as_any_other() {
    let report = build_stored(&service("dyno", |n| level(n, 40)));
    let figure = report.figure(CASE, "dyno", "throughput").unwrap();
    let steady = figure.steady.as_ref().unwrap();
    assert_eq!((steady.verdict, steady.measured_s), ("steady", Some(20.0)));
    assert_eq!(cells(&report)[5], "faster");
    assert!(report.figure(CASE, "dyno", "cpu").unwrap().steady.is_none());
    assert!(
        report
            .findings
            .iter()
            .all(|f| f.rule != "not-steady" && f.rule != "short-run")
    );
}

#[test]
fn a_rate_that_falls_gets_no_other_verdict() {
    let mut run = service("dyno", falling);
    let report = build_stored(&run);
    let [.., verdict, choose] = cells(&report);
    assert_eq!(verdict, "not steady");
    assert!(
        choose.starts_with("nothing yet: dyno: the rate fell by "),
        "{choose}"
    );
    let figure = report.figure(CASE, "dyno", "throughput").unwrap();
    assert!(
        figure
            .ratio_to
            .values()
            .all(|ratio| ratio.verdict == "not steady")
    );
    let finding = report
        .findings
        .iter()
        .find(|f| f.rule == "not-steady")
        .unwrap();
    assert_eq!(finding.severity, Severity::Warning);

    let filled = table(
        &mut run,
        TableKind::Cases,
        &["throughput", "ratio", "verdict"],
    );
    assert!(filled.rows[0][1].text.ends_with("(not steady)") && filled.rows[0][1].loud);
    assert_eq!(filled.rows[0][3].text, "not steady");
    assert!(
        filled.notes[0].contains("(load-csv-2 on dyno)"),
        "{:?}",
        filled.notes
    );
    let guide = table(&mut run, TableKind::Guide, &[]);
    assert!(
        guide.rows[0][2].text.contains("not steady"),
        "{:?}",
        guide.rows
    );
}

#[test]
fn a_winner_stands_if_it_is_the_same_whatever_a_rate_does_later() {
    let verdict = |system: &str, windows: fn(usize) -> Vec<f64>| {
        let report = build_stored(&service(system, windows));
        let figure = report.figure(CASE, "dyno", "throughput").unwrap();
        figure.ratio_to["duckdb"].clone()
    };
    // We are faster here. A peer that falls is slower still, and one that rises may overtake us.
    let falls = verdict("duckdb", falling);
    assert_eq!(falls.verdict, "faster");
    assert!(
        falls
            .reason
            .contains(", although duckdb: the rate fell by "),
        "{}",
        falls.reason
    );
    assert_eq!(verdict("duckdb", rising).verdict, "not steady");
    assert_eq!(verdict("dyno", rising).verdict, "faster");
    assert_eq!(verdict("dyno", falling).verdict, "not steady");
    // A change that windows would have hidden is less than the factor by which we are faster.
    let hidden = verdict("duckdb", uneven);
    assert_eq!(hidden.verdict, "faster");
    assert!(hidden.reason.contains("a change of"), "{}", hidden.reason);
    assert!(hidden.widest.0 < hidden.low && hidden.widest.1 > hidden.high);
}

#[test]
fn a_target_is_judged_where_it_is_the_same_whatever_a_rate_does_later() {
    let state = |system: &str, windows: fn(usize) -> Vec<f64>, of: &str, at_least: f64| {
        let mut run = service(system, windows);
        let case = run.run.plan.cases.iter_mut().find(|c| c.name == CASE);
        let of = of.to_owned();
        case.unwrap().target = Some(Target { of, at_least });
        let report = build_stored(&run);
        let case = report.cases.iter().find(|c| c.plan.name == CASE).unwrap();
        let outcome = case.target.as_ref().unwrap();
        assert_eq!(
            outcome.reason.is_empty(),
            outcome.state != "not judged",
            "{outcome:?}"
        );
        outcome.state
    };
    // We are 5.3 times as fast as the peer, and at 61% of the limit.
    assert_eq!(state("dyno", falling, "duckdb", 7.0), "missed");
    assert_eq!(state("dyno", falling, "duckdb", 4.0), "not judged");
    assert_eq!(state("dyno", rising, "duckdb", 7.0), "not judged");
    assert_eq!(state("dyno", rising, "duckdb", 4.0), "met");
    assert_eq!(state("duckdb", falling, "duckdb", 4.0), "met");
    assert_eq!(state("duckdb", rising, "duckdb", 4.0), "not judged");
    assert_eq!(state("dyno", falling, "limit", 0.9), "missed");
    assert_eq!(state("dyno", falling, "limit", 0.5), "not judged");
}

#[test]
fn a_burst_is_not_judged() {
    for (count, window_s, said) in [
        (40, Some(0.0525), "2.10 s measured, 20 s are wanted"),
        (40, None, "no rate by time was recorded"),
        (
            10,
            Some(2.0),
            "a trend needs at least 20 numbers and got 10",
        ),
    ] {
        let mut run = service("dyno", |n| level(n, count));
        for sample in run.samples.iter_mut().filter(|s| s.system == "dyno") {
            sample.window_s = window_s;
        }
        let report = build_stored(&run);
        let [.., verdict, choose] = cells(&report);
        assert_eq!(verdict, "not judged");
        assert_eq!(choose, format!("nothing yet: dyno: {said}"));
        let rules: Vec<&str> = report.findings.iter().map(|f| f.rule).collect();
        assert_eq!(
            rules.contains(&"short-run"),
            window_s != Some(2.0),
            "{rules:?}"
        );
    }
}

#[test]
fn a_run_that_is_not_steady_is_no_evidence_of_a_change() {
    let rules = CompareRules::default();
    let (base, mut new) = (service("dyno", |n| level(n, 40)), service("dyno", falling));
    new.run.program.hash = "newer".into();
    let seen = compare(&base, &[new], &rules);
    let change = seen
        .changes
        .iter()
        .find(|c| c.case == CASE && c.system == "dyno")
        .unwrap();
    assert_eq!(
        (change.verdict, change.answer),
        ("not steady", Answer::NotEnoughEvidence)
    );
    assert!(
        change.reason.starts_with("dyno: the rate fell by"),
        "{}",
        change.reason
    );
}

#[test]
fn three_samples_at_a_factor_of_four_are_not_judged() {
    let mut run = stored();
    run.samples.retain(|sample| sample.block < 3);
    let report = build_stored(&run);
    let figure = report.figure(CASE, "dyno", "throughput").unwrap();
    let ratio = &figure.ratio_to["duckdb"];
    assert!(
        ratio.ratio > 4.0 && ratio.verdict == "not judged",
        "{ratio:?}"
    );
    let [.., verdict, choose] = cells(&report);
    assert_eq!(verdict, "not judged");
    assert_eq!(choose, "nothing yet: n = 3, and a verdict needs 5");
    let guide = table(&mut run, TableKind::Guide, &[]);
    assert_eq!(guide.rows[0][1].text, "nothing: no difference was judged");
    let mut newer = run.clone();
    newer.run.program.hash = "newer".into();
    let again = compare(&run, &[newer], &CompareRules::default());
    let change = again.changes.iter().find(|c| c.case == CASE).unwrap();
    assert_eq!(
        (change.verdict, change.answer),
        ("not judged", Answer::NotEnoughEvidence)
    );
}

#[test]
fn the_best_peer_is_never_one_that_promises_less() {
    let mut run = stored();
    let rows = headline(&build_stored(&run)).rows;
    let before = rows.iter().find(|row| row.cells[0] == "load-gz-2").unwrap();
    assert!(before.cells[2].starts_with("chdb "), "{:?}", before.cells);
    let mut cases = run.run.plan.cases.iter_mut();
    let case = cases.find(|c| c.name == "load-gz-2").unwrap();
    let what = "it answers before its data is on the disk".to_owned();
    case.promises_less.insert("chdb".into(), what.clone());
    let report = build_stored(&run);
    let page = headline(&report);
    let row = page.rows.iter().find(|row| row.cells[0] == "load-gz-2");
    let row = row.unwrap();
    assert!(row.cells[2].starts_with("duckdb "), "{:?}", row.cells);
    assert!(!row.cells[6].contains("chdb"), "{:?}", row.cells);
    let note = format!("chdb promises less, so it is not the best peer: {what}");
    assert!(page.notes.contains(&note), "{:?}", page.notes);
    // Its figure and its ratio are in the report as before.
    let ours = report.figure("load-gz-2", "dyno", "throughput").unwrap();
    assert!(ours.ratio_to.contains_key("chdb"));
}

#[test]
fn the_best_peer_is_never_one_of_our_own_variants() {
    let mut run = stored();
    let case = run
        .run
        .plan
        .cases
        .iter_mut()
        .find(|c| c.name == "load-gz-2")
        .unwrap();
    // chdb is nearer to ours than duckdb; as a variant of ours it has no place on page one.
    case.variants.insert("chdb".into(), Default::default());
    let report = build_stored(&run);
    let own = report.tables.last().unwrap();
    assert_eq!(own.title, "Variants and libraries inside dyno");
    for page in [report.to_html().unwrap(), report.to_markdown().unwrap()] {
        assert!(page.contains(&own.title), "every form has the table");
    }
    let texts: Vec<&str> = own.rows[0].iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(
        (own.rows.len(), &texts[..3]),
        (1, &["load-gz-2", "chdb", "variant"][..])
    );
    let rows = headline(&report).rows;
    let row = rows.iter().find(|row| row.cells[0] == "load-gz-2").unwrap();
    assert!(row.cells[2].starts_with("duckdb "), "{:?}", row.cells);
    let claims = dyno_report::figures_of(&report, &report.samples).claims;
    assert!(
        claims.iter().all(|claim| !claim.text.contains("chdb")),
        "{claims:?}"
    );
}

#[test]
fn a_changed_tree_is_told_loudly() {
    let mut run = stored();
    run.run.program.git_revision = "59a74695818e+".into();
    let report = build_stored(&run);
    let first = &headline(&report).notes[0];
    assert!(
        first.starts_with("not to be published: changed tree: "),
        "{first}"
    );
    let finding = report
        .findings
        .iter()
        .find(|f| f.rule == "changed-tree")
        .unwrap();
    assert_eq!(finding.severity, Severity::Error);
}

#[test]
fn runs_of_different_suites_have_nothing_to_compare() {
    let (base, mut new) = (stored(), stored());
    new.run.plan.suite = "k2".into();
    assert_eq!(nothing_to_compare(&base, &new), None, "they share cases");
    new.run.plan.cases.retain(|case| case.name == CASE);
    new.run.plan.cases[0].name = "one-core".into();
    let said = nothing_to_compare(&base, &new).unwrap();
    assert_eq!(said, "nothing to compare: suite wspr against k2");
    new.run.plan.suite = "wspr".into();
    new.run.plan.size = Size::Tiny;
    assert_eq!(nothing_to_compare(&base, &new), None);
}

#[test]
fn the_requests_of_failed_samples_are_not_behind_the_percentiles() {
    let mut run = stored();
    let samples = run.samples.iter_mut().filter(|s| s.case == CASE);
    let mut ours = samples.filter(|s| s.system == "dyno");
    for (number, sample) in ours.by_ref().enumerate() {
        sample.metrics.insert("latency-p99".into(), 0.001);
        sample.metrics.insert("latency-count".into(), 50_000.0);
        if number > 0 {
            sample.outcome = Outcome::Failed("a wrong answer".into());
            sample.metrics.insert("latency-count".into(), 3.0);
        }
    }
    let report = build_stored(&run);
    let figures = dyno_report::figures_of(&report, &report.samples);
    let subject = format!("{CASE} on dyno");
    let table = figures.latencies.iter().find(|l| l.subject == subject);
    assert_eq!(table.unwrap().count, Some(50_000.0));
}

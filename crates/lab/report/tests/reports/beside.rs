//! What a report says of a run beside a load.

use crate::made_up;

use dyno_record::{Arm, Sample, StoredRun};
use dyno_report::{FilledTable, Report, build_stored};

const TITLE: &str = "What the load beside the run costs";

/// Every system of `load-gz-2` again beside a load, at `share` of its rate alone.
fn beside(share: f64) -> StoredRun {
    let mut stored = made_up::stored();
    stored.run.beside = Some("memory".into());
    let alone = stored
        .samples
        .iter()
        .filter(|sample| sample.case == "load-gz-2" && sample.arm == Arm::Main);
    let loaded: Vec<Sample> = alone
        .map(|sample| {
            let mut sample = sample.clone();
            sample.arm = Arm::Beside;
            sample.position += 4;
            sample
                .metrics
                .entry("throughput".into())
                .and_modify(|rate| *rate *= share);
            sample
        })
        .collect();
    stored.samples.extend(loaded);
    stored
}

fn table(report: &Report) -> &FilledTable {
    report
        .tables
        .iter()
        .find(|table| table.title == TITLE)
        .unwrap()
}

fn texts<'a>(table: &'a FilledTable, system: &str) -> Vec<&'a str> {
    let row = table
        .rows
        .iter()
        .find(|row| row[0].text == "load-gz-2" && row[1].text == system);
    row.unwrap().iter().map(|cell| cell.text.as_str()).collect()
}

#[test]
fn a_load_that_halves_a_rate_is_said_to() {
    let report = build_stored(&beside(0.5));
    let table = table(&report);
    let dyno = texts(table, "dyno");
    assert!(
        dyno[2].starts_with("6.") && dyno[3].starts_with("3."),
        "{dyno:?}"
    );
    assert!(dyno[4].starts_with("0.500×"), "{dyno:?}");
    assert_eq!(dyno[5], "slower");
    assert!(
        table.notes[0].contains("The load is: memory."),
        "{:?}",
        table.notes
    );
    // A case that has no sample beside the load says so, and claims nothing.
    let other = table
        .rows
        .iter()
        .find(|row| row[0].text == "load-csv-2")
        .unwrap();
    assert_eq!(other[5].text, "–");
    // On page one of both forms.
    let html = report.to_html().unwrap();
    assert!(html.find(TITLE).unwrap() < html.find("id=\"findings\"").unwrap());
    assert!(
        report
            .to_markdown()
            .unwrap()
            .contains(&format!("## {TITLE}"))
    );
    assert!(
        report
            .to_markdown()
            .unwrap()
            .contains("memory, beside a second invocation")
    );
    assert!(report.command().ends_with(" --beside memory"));
}

#[test]
fn a_load_that_costs_nothing_is_not_said_to() {
    let report = build_stored(&beside(1.0));
    let dyno = texts(table(&report), "dyno");
    assert!(dyno[4].starts_with("1.00×"), "{dyno:?}");
    assert_eq!(dyno[5], "no difference shown");
}

#[test]
fn figures_are_of_the_samples_alone() {
    let alone = build_stored(&made_up::stored());
    let report = build_stored(&beside(0.5));
    assert_eq!(report.figures, alone.figures);
    let names = |report: &Report| {
        let findings = report.findings.iter();
        findings.map(|finding| finding.rule).collect::<Vec<_>>()
    };
    assert_eq!(names(&report), names(&alone), "the load spoils no figure");
}

#[test]
fn a_run_that_was_beside_a_load_as_a_whole_has_no_such_table() {
    let mut stored = made_up::stored();
    stored.run.beside = Some("stress-ng".into());
    let report = build_stored(&stored);
    assert!(report.tables.iter().all(|table| table.title != TITLE));
    let findings = report.findings.iter();
    let seen: Vec<&str> = findings.map(|finding| finding.seen.as_str()).collect();
    assert!(
        seen.iter().any(|seen| seen.contains("stress-ng")),
        "{seen:?}"
    );
}

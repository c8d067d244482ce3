//! What a report says of experiments, on samples whose cause is known.

use crate::made_up;

use std::collections::BTreeMap;

use dyno_record::{Arm, Experiment, Gives, Outcome, Sample, StoredRun, Table, TableRow};
use dyno_report::{Cause, Report, build_stored};

const CASE: &str = "load-csv-2";

/// A change: its system, its resource, its direction, and how much faster it makes the program.
type Change = (&'static str, &'static str, Gives, f64);

/// The made-up run with experiments in [`CASE`]. Each has the samples of `dyno` again, with the
/// rate times its share, and with a wobble of its own.
fn asked(changes: &[Change]) -> StoredRun {
    let mut stored = made_up::stored();
    stored.run.plan.tables = vec![Table {
        ranked_by: None,
        title: "Where the time goes".into(),
        kind: Default::default(),
        columns: vec!["system".into(), "bottleneck".into()],
        rows: vec![TableRow {
            label: "load".into(),
            case: CASE.into(),
            system: None,
            metric: None,
            seed: Vec::new(),
        }],
        ranked: false,
    }];
    let plain: Vec<Sample> = stored
        .samples
        .iter()
        .filter(|s| s.case == CASE && s.system == "dyno" && s.arm == Arm::Main)
        .cloned()
        .collect();
    let case = stored.run.plan.cases.iter_mut().find(|c| c.name == CASE);
    let case = case.unwrap();
    case.untried = BTreeMap::from([("transport".into(), "the case has no parameter".into())]);
    for (number, (system, resource, gives, share)) in changes.iter().enumerate() {
        case.systems.push((*system).into());
        case.variants.insert((*system).into(), BTreeMap::new());
        let experiment = Experiment {
            resource: (*resource).into(),
            change: format!("another {resource}"),
            gives: *gives,
            around: None,
            keeps_nothing: false,
        };
        case.experiments.insert((*system).into(), experiment);
        stored.samples.extend(plain.iter().map(|sample| {
            let mut sample = sample.clone();
            sample.system = (*system).into();
            sample.position += 3;
            let wobble =
                1.0 + 0.004 * f64::from((sample.block * 5 + number as u32 * 3) % 7) - 0.012;
            let rate = sample.metrics.get_mut("throughput").unwrap();
            *rate *= share * wobble;
            sample
        }));
    }
    stored
}

fn cause(report: &Report) -> &Cause {
    let case = report.cases.iter().find(|case| case.plan.name == CASE);
    case.unwrap().cause.as_ref().unwrap()
}

/// The cells of the column `bottleneck` by system.
fn bottlenecks(report: &Report) -> BTreeMap<String, String> {
    let rows = report.tables[0].rows.iter();
    rows.map(|row| (row[1].text.clone(), row[2].text.clone()))
        .collect()
}

#[test]
fn the_resource_that_moves_the_figure_is_named() {
    let report = build_stored(&asked(&[
        ("scratch-in-memory", "disk", Gives::More, 1.4),
        ("workers-doubled", "threads", Gives::More, 1.0),
        ("workers-one-fewer", "threads", Gives::Less, 0.995),
    ]));
    let cause = cause(&report);
    assert_eq!(cause.resource.as_deref(), Some("disk"));
    assert!(
        cause.text.starts_with("disk: another disk gives 1.4"),
        "{}",
        cause.text
    );
    let proves: Vec<bool> = cause.trials.iter().map(|trial| trial.proves).collect();
    assert_eq!(proves, [true, false, false]);
    assert_eq!(cause.untried[0].0, "transport");
    let cells = bottlenecks(&report);
    assert_eq!(cells["dyno"], "disk");
    assert_eq!(cells["duckdb"], "parse, unproven", "a peer was not asked");
    assert!(!cells.contains_key("scratch-in-memory"));
    // Page one says it in every form.
    let page = report.to_markdown().unwrap();
    assert!(
        page.contains("what bounds load-csv-2: disk: another disk gives"),
        "{page}"
    );
    let heading = page.find("## What bounds each figure").unwrap();
    assert!(page[heading..].contains("it bounds the figure"));
    assert!(report.command().ends_with(" --why"));
}

#[test]
fn a_figure_that_gets_worse_without_the_resource_proves_it_too() {
    let report = build_stored(&asked(&[
        ("workers-one-fewer", "threads", Gives::Less, 0.55),
        ("scratch-in-memory", "disk", Gives::More, 1.1),
    ]));
    let cause = cause(&report);
    // Both move the figure; the farther one is named first.
    assert_eq!(cause.resource.as_deref(), Some("threads"));
    assert!(
        cause.text.contains("; another disk gives"),
        "{}",
        cause.text
    );
}

#[test]
fn where_no_change_moves_the_figure_nothing_is_proven() {
    let report = build_stored(&asked(&[
        ("scratch-in-memory", "disk", Gives::More, 1.0),
        ("workers-doubled", "threads", Gives::More, 1.003),
    ]));
    let cause = cause(&report);
    assert_eq!(cause.resource, None);
    let text = &cause.text;
    assert!(
        text.starts_with("unproven: none of the 2 changes moved the figure beyond ±"),
        "{text}"
    );
    assert_eq!(bottlenecks(&report)["dyno"], "unproven");
}

#[test]
fn a_move_against_the_direction_of_a_bottleneck_proves_nothing() {
    let report = build_stored(&asked(&[
        ("workers-doubled", "threads", Gives::More, 0.7),
        ("scratch-in-memory", "disk", Gives::More, 1.0),
    ]));
    let cause = cause(&report);
    assert_eq!(cause.resource, None);
    assert!(
        cause
            .text
            .contains("as a bottleneck would (another threads gives 0.69"),
        "{}",
        cause.text
    );
    assert_eq!(
        cause.trials[0].says,
        "the figure gets worse with more of it"
    );
}

#[test]
fn too_few_blocks_and_failed_changes_prove_nothing() {
    let mut stored = asked(&[("scratch-in-memory", "disk", Gives::More, 1.4)]);
    stored.samples.retain(|sample| sample.block < 3);
    let report = build_stored(&stored);
    assert_eq!(cause(&report).resource, None);
    assert!(
        cause(&report).text.contains("no change was judged"),
        "{}",
        cause(&report).text
    );

    let mut stored = asked(&[("one-core-fewer", "processor", Gives::Less, 1.0)]);
    let failed = Outcome::Failed("before timing: it has one processor".into());
    for sample in stored
        .samples
        .iter_mut()
        .filter(|s| s.system == "one-core-fewer")
    {
        sample.outcome = failed.clone();
    }
    let report = build_stored(&stored);
    let trial = &cause(&report).trials[0];
    assert_eq!(
        trial.says,
        "could not be tried: before timing: it has one processor"
    );
    assert!(
        !report
            .findings
            .iter()
            .any(|found| found.subject.contains("one-core-fewer")),
        "a change that cannot be made is no fault of the run"
    );
}

#[test]
fn without_experiments_the_longest_stage_is_unproven() {
    let mut stored = asked(&[]);
    for case in &mut stored.run.plan.cases {
        case.untried.clear();
    }
    let report = build_stored(&stored);
    assert!(report.cases.iter().all(|case| case.cause.is_none()));
    assert_eq!(bottlenecks(&report)["dyno"], "inflate, unproven");
    assert!(!report.command().contains("--why"));
}

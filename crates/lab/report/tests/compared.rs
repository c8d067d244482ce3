//! Two runs set side by side.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

mod made_up;

use dyno_record::StoredRun;
use dyno_report::{Answer, CompareRules, Comparison, compare};
use made_up::stored;

/// The made-up run with every rate of ours multiplied, its blocks in the other order (so that the
/// noise of two runs differs), and the one-sample case left out.
fn scaled(factor: f64) -> StoredRun {
    let mut run = base();
    run.samples.reverse();
    for sample in run.samples.iter_mut().filter(|s| s.system == "dyno") {
        if let Some(rate) = sample.metrics.get_mut("throughput") {
            *rate *= factor;
        }
    }
    run
}

fn base() -> StoredRun {
    let mut run = stored();
    run.run.plan.cases.retain(|case| case.name != "load-once");
    run.samples.retain(|sample| sample.case != "load-once");
    run
}

fn against(new: &StoredRun) -> Comparison {
    compare(&base(), new, &CompareRules::default())
}

#[test]
fn the_same_again_shows_nothing() {
    let seen = against(&scaled(1.0));
    assert_eq!(
        (seen.answer, seen.answer.exit_code()),
        (Answer::NoRegression, 0)
    );
    assert_eq!((seen.marks.len(), seen.left_out.len()), (0, 0));
    assert!(
        seen.changes
            .iter()
            .all(|c| c.verdict != "slower" && c.verdict != "faster")
    );
}

#[test]
fn a_slowdown_is_a_regression_and_a_gain_is_not() {
    let slower = against(&scaled(0.9));
    assert_eq!(
        (slower.answer, slower.answer.exit_code()),
        (Answer::Regression, 1)
    );
    assert!(
        slower
            .sentence()
            .starts_with("Slower: load-gz-2, load-csv-2")
    );
    assert_eq!(against(&scaled(1.1)).answer, Answer::NoRegression);
    insta::assert_snapshot!(slower.to_markdown());
}

#[test]
fn an_accepted_slowdown_passes_and_a_doubtful_one_needs_more_samples() {
    let rules = |max| CompareRules {
        max_slowdown: Some(max),
        across: false,
    };
    let at = |factor, max| compare(&base(), &scaled(factor), &rules(max)).answer;
    assert_eq!(at(0.9, 0.2), Answer::NoRegression);
    assert_eq!(at(0.9, 0.03), Answer::Regression);
    // The interval of 0.97 reaches below what is accepted, the figure itself does not.
    assert_eq!(at(0.971, 0.03), Answer::NotEnoughEvidence);
}

#[test]
fn too_few_samples_are_not_enough_evidence() {
    let mut new = scaled(0.5);
    new.samples.retain(|sample| sample.block < 3);
    let seen = against(&new);
    assert_eq!(
        (seen.answer, seen.answer.exit_code()),
        (Answer::NotEnoughEvidence, 3)
    );
}

#[test]
fn another_machine_is_marked_and_judged_only_on_demand() {
    let mut new = scaled(0.5);
    new.run.machine.fingerprint = "other".into();
    new.run.program.profile = "debug".into();
    let seen = against(&new);
    assert_eq!(seen.marks[0], "machine differs: 9f2c71d0, then other");
    assert_eq!(
        (seen.marks.len(), seen.answer),
        (2, Answer::NotEnoughEvidence)
    );
    let across = CompareRules {
        across: true,
        ..CompareRules::default()
    };
    assert_eq!(compare(&base(), &new, &across).answer, Answer::Regression);
}

#[test]
fn a_case_that_asks_for_other_work_is_left_out() {
    let mut new = scaled(1.0);
    new.run.plan.cases[0]
        .params
        .insert("workers".into(), 4.into());
    new.run.plan.cases.remove(1);
    let seen = against(&new);
    assert_eq!(
        seen.left_out,
        [
            "load-gz-2: its parameters changed",
            "load-csv-2: only in the older run"
        ]
    );
}

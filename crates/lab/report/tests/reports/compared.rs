//! Two runs set side by side.

use std::collections::BTreeMap;
use std::path::Path;

use crate::made_up::{make_load_late, stored};
use dyno_record::{Outcome, RunDir, Sample, StoredRun};
use dyno_report::{Answer, CompareRules, Comparison, NotCompared, compare};

/// The made-up run with every rate of ours multiplied, its blocks in the other order (so that the
/// noise of two runs differs), and the one-sample case left out.
fn scaled(factor: f64) -> StoredRun {
    let mut run = base();
    run.run.program.hash = "newer".into();
    run.samples.reverse();
    for sample in run.samples.iter_mut().filter(|s| s.system == "dyno") {
        // The same work at another rate takes another time, or the linter would call it an error.
        if let Some(rate) = sample.metrics.get_mut("throughput") {
            *rate *= factor;
            sample
                .metrics
                .entry("time".into())
                .and_modify(|time| *time /= factor);
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

/// A second run of the newer program: its samples are the same ones in other blocks.
fn twice(new: &StoredRun) -> [StoredRun; 2] {
    let mut again = new.clone();
    again.run.started_at = "2026-11-21T09:00:00Z".into();
    again.samples.rotate_left(1);
    [new.clone(), again]
}

fn against(new: &StoredRun) -> Comparison {
    compare(&base(), &twice(new), &CompareRules::default())
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
    let at = |factor, max| {
        let new = scaled(factor);
        compare(&base(), &twice(&new), &rules(max)).answer
    };
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
fn a_figure_that_is_an_error_shows_no_regression_and_no_gain() {
    for (which, factor) in [("older", 0.5), ("newer", 0.5), ("newer", 1.5)] {
        let (mut older, mut newer) = (base(), scaled(factor));
        let late = if which == "older" {
            &mut older
        } else {
            &mut newer
        };
        make_load_late(late, "load-csv-2", "dyno");
        let seen = compare(&older, &twice(&newer), &CompareRules::default());
        let mut changes = seen.changes.iter();
        let change = changes.find(|c| c.case == "load-csv-2" && c.system == "dyno");
        let change = change.expect("the case is still shown");
        assert_eq!(
            (change.verdict, change.answer),
            ("not judged", Answer::NotEnoughEvidence)
        );
        let reason = format!(
            "in the {which} run, dyno: the load generator did not keep its schedule \
             (generator-behind)"
        );
        assert_eq!(change.reason, reason);
    }
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
    let seen = compare(&base(), &twice(&new), &across);
    assert_eq!(seen.answer, Answer::Regression);
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
            not_compared("load-gz-2", None, "its parameters changed"),
            not_compared("load-csv-2", None, "only in the older run"),
        ]
    );
}

#[test]
fn one_program_is_compared_with_itself_and_nothing_is_found() {
    let mut new = scaled(0.5);
    new.run.program.hash = base().run.program.hash;
    let seen = compare(&base(), &[new], &CompareRules::default());
    assert_eq!(seen.answer, Answer::NoRegression);
    let sentence = seen.sentence();
    assert!(
        sentence.starts_with("Same program, no difference in"),
        "{sentence}"
    );
    assert!(sentence.contains("up to 2.0"), "{sentence}");
    assert!(seen.changes.iter().all(|c| c.verdict == "same program"));
}

#[test]
fn a_slowdown_must_recur_in_a_second_run() {
    let slow = scaled(0.9);
    let once = compare(
        &base(),
        std::slice::from_ref(&slow),
        &CompareRules::default(),
    );
    assert_eq!(once.answer, Answer::NotEnoughEvidence);
    let ours = &once.changes[0];
    assert_eq!(ours.verdict, "slower");
    assert!(
        ours.reason.ends_with("must recur in a second newer run"),
        "{}",
        ours.reason
    );
    let same_again = [slow.clone(), slow.clone()];
    let seen = compare(&base(), &same_again, &CompareRules::default());
    assert_eq!(seen.answer, Answer::NotEnoughEvidence, "a run given twice");
    // The machine was slow once, and so were the peers of no run: the newer program disagrees with
    // itself, which is its noise.
    let seen = compare(&base(), &[slow, scaled(1.0)], &CompareRules::default());
    assert_eq!(seen.answer, Answer::NoRegression);
}

#[test]
fn a_machine_that_slows_down_is_not_a_regression() {
    let mut new = base();
    new.run.program.hash = "newer".into();
    new.samples.reverse();
    for sample in &mut new.samples {
        for (name, value) in &mut sample.metrics {
            match name.as_str() {
                "throughput" => *value *= 0.7,
                _ => *value /= 0.7,
            }
        }
    }
    let seen = against(&new);
    assert_eq!(seen.answer, Answer::NoRegression, "{}", seen.to_markdown());
    let peer = seen.changes.iter().find(|c| c.system == "duckdb").unwrap();
    assert_eq!(peer.verdict, "same program");
}

#[test]
fn nothing_unchanged_means_that_the_drift_is_not_known() {
    let alone = |mut run: StoredRun| {
        for case in &mut run.run.plan.cases {
            case.systems.retain(|system| system == "dyno");
        }
        run
    };
    let seen = compare(
        &alone(base()),
        &[alone(scaled(0.9))],
        &CompareRules::default(),
    );
    assert_eq!(seen.changes[0].verdict, "not judged");
    assert_eq!(seen.answer, Answer::NotEnoughEvidence);
}

#[test]
fn two_committed_runs_of_one_program_are_said_to_be_one() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results");
    let open = |name: &str| RunDir::open(&results.join(name)).unwrap();
    for [base, new] in [
        [
            "epyc-2-cores/2026-11-21-tpch-full",
            "epyc-2-cores/2026-11-21-tpch-all-cases",
        ],
        [
            "xeon-m167-2-cores/2026-11-29-sage-quick",
            "xeon-m167-2-cores/2026-11-29-sage-quick-again",
        ],
    ] {
        let seen = compare(&open(base), &[open(new)], &CompareRules::default());
        println!("{}", seen.to_markdown());
        assert_eq!(seen.answer.exit_code(), 0, "{}", seen.to_markdown());
        let sentence = seen.sentence();
        assert!(
            sentence.starts_with("Same program, no difference in"),
            "{sentence}"
        );
    }
}

#[test]
fn a_case_that_the_newer_program_no_longer_does_is_not_passed_over() {
    let mut new = scaled(1.0);
    let ours = |s: &&mut Sample| s.case == "load-csv-2" && s.system == "dyno";
    for sample in new.samples.iter_mut().filter(ours) {
        sample.outcome = Outcome::Failed("it broke".into());
    }
    let seen = against(&new);
    assert_eq!(
        (seen.answer, seen.answer.exit_code()),
        (Answer::NotEnoughEvidence, 3)
    );
    assert_eq!(
        seen.to_lines(),
        [
            "Not enough evidence: left out, without a figure of ours: load-csv-2.",
            "left out: load-csv-2 on dyno: no sample of the newer run ended well",
        ]
    );
    // What the newer run was not asked for is not lost.
    new.run.plan.cases.retain(|case| case.name != "load-csv-2");
    assert_eq!(against(&new).answer, Answer::NoRegression);
}

#[test]
fn a_variant_with_other_parameters_is_left_out() {
    let with = |mut run: StoredRun, codec: &str| {
        let own = BTreeMap::from([("codec".to_owned(), codec.into())]);
        let case = &mut run.run.plan.cases[0];
        case.variants.insert("chdb".into(), own);
        run
    };
    let left_out = |codec: &str| {
        let new = twice(&with(scaled(1.0), codec));
        compare(&with(base(), "lz4"), &new, &CompareRules::default()).left_out
    };
    assert!(left_out("lz4").is_empty());
    assert_eq!(
        left_out("zstd"),
        [not_compared(
            "load-gz-2",
            Some("chdb"),
            "its parameters changed"
        )]
    );
}

fn not_compared(case: &str, system: Option<&str>, reason: &str) -> NotCompared {
    NotCompared {
        case: case.to_owned(),
        system: system.map(str::to_owned),
        reason: reason.to_owned(),
    }
}

//! One case of a record beside the same case of a new run.

use crate::made_up::stored;
use dyno_record::StoredRun;
use dyno_report::{Agreement, Reproduction, reproduce};

const CASE: &str = "load-gz-2";

/// The made-up run again: its samples in other blocks, and every rate of `system` multiplied.
fn again(system: &str, factor: f64) -> StoredRun {
    let mut run = stored();
    run.run.started_at = "2026-11-21T09:00:00Z".into();
    run.samples.rotate_left(1);
    multiply_rates(&mut run, |other| other == system, factor);
    run
}

/// Multiplies the rates of the systems that `fits` is true of, and shortens the times alike: a rate
/// that is not that of its time would be an error.
fn multiply_rates(run: &mut StoredRun, fits: impl Fn(&str) -> bool, factor: f64) {
    for sample in run.samples.iter_mut().filter(|s| fits(&s.system)) {
        for (name, by) in [("throughput", factor), ("time", 1.0 / factor)] {
            if let Some(value) = sample.metrics.get_mut(name) {
                *value *= by;
            }
        }
    }
}

fn reproduction(new: &StoredRun) -> Reproduction {
    reproduce(&stored(), new, CASE).unwrap()
}

#[test]
fn the_same_again_agrees() {
    let found = reproduction(&again("dyno", 1.0));
    assert_eq!(found.agreement, Agreement::Agrees, "{}", found.to_text());
    assert!(found.claims.len() >= 2, "{}", found.to_text());
    assert!(found.to_text().ends_with("load-gz-2: agrees\n"));
}

#[test]
fn half_the_rate_disagrees_whichever_side_it_is_on() {
    for (system, factor) in [("dyno", 0.5), ("dyno", 2.0), ("duckdb", 0.5)] {
        let found = reproduction(&again(system, factor));
        let text = found.to_text();
        assert_eq!(found.agreement, Agreement::Disagrees, "{system}: {text}");
    }
}

#[test]
fn on_another_machine_ratios_alone_are_compared() {
    let mut run = again("dyno", 0.5);
    multiply_rates(&mut run, |system| system != "dyno", 0.5);
    run.run.machine.fingerprint = "another".into();
    let found = reproduction(&run);
    assert_eq!(found.agreement, Agreement::Agrees, "{}", found.to_text());
    assert!(
        found
            .claims
            .iter()
            .all(|claim| claim.what.contains("against"))
    );
    assert!(found.to_text().contains("not the same: machine differs"));
}

#[test]
fn too_few_blocks_cannot_tell() {
    let mut run = again("dyno", 0.5);
    run.samples.retain(|sample| sample.block < 3);
    let found = reproduction(&run);
    assert_eq!(
        found.agreement,
        Agreement::CannotTell,
        "{}",
        found.to_text()
    );
}

#[test]
fn a_case_that_asks_for_other_work_is_not_compared() {
    let mut run = again("dyno", 1.0);
    let case = run.run.plan.cases.iter_mut().find(|c| c.name == CASE);
    case.unwrap().params.insert("rows".into(), 7.into());
    let said = reproduce(&stored(), &run, CASE).unwrap_err();
    assert!(said.contains("its parameters changed"), "{said}");
    assert!(reproduce(&stored(), &run, "nosuch").is_err());
}

#[test]
fn the_reason_why_a_case_did_not_run_is_its_own() {
    let mut run = again("dyno", 1.0);
    let case = run.run.plan.cases.iter_mut().find(|c| c.name == CASE);
    case.unwrap().name = format!("{CASE}-longer");
    let refused = reproduce(&stored(), &run, CASE).unwrap_err();
    assert_eq!(refused, "load-gz-2: only in the older run");
}

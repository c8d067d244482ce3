//! Bugs that are put in on purpose are caught, each within so many seeds, and so are disks that
//! lie.

use dyno_txn_check::Rule;
use dyno_txn_check::simulate::{Options, Run, simulate};
use dyno_txn_core::planted::{Bug, Planted};

/// Some seed among the first must break a rule with the bug, and none without it.
fn caught(bug: Bug, within: u64) {
    let options = Options {
        planted: Planted::one(bug),
        ..Options::default()
    };
    let mut runs = (1..=within).map(|seed| simulate(seed, &options));
    let run = runs.find(|run| !run.holds());
    let run = run.unwrap_or_else(|| panic!("{bug:?} is not caught within {within} seeds"));
    let sound = simulate(run.seed, &Options::default());
    assert!(
        sound.holds(),
        "seed {}: {}",
        run.seed,
        sound.judgement.verdict
    );
    println!(
        "{bug:?}: seed {}, {:?}",
        run.seed, run.judgement.verdict.broken
    );
}

#[test]
fn reads_that_are_not_recorded() {
    caught(Bug::ReadCache, 60);
}

#[test]
fn writes_to_deleted_rows_that_a_scan_has_passed_over() {
    caught(Bug::DeletedRows, 200);
}

#[test]
fn a_push_that_lies() {
    caught(Bug::Push, 60);
}

#[test]
fn a_recovery_that_forgets() {
    caught(Bug::Recovery, 200);
}

#[test]
fn a_participant_that_finalizes_in_part() {
    caught(Bug::Finalize, 60);
}

/// The log's recovery, or the comparison with what it was given, must see that writes are missing
/// which were confirmed.
#[test]
fn disks_that_confirm_what_they_did_not_write() {
    let options = Options {
        lying_disks: true,
        ..Options::default()
    };
    let mut runs = (1..=60).map(|seed| simulate(seed, &options));
    let lost = |run: &Run| run.judgement.verdict.broken.contains_key(&Rule::Durability);
    let run = runs.find(lost).expect("a lost write is noticed");
    println!("seed {}: {}", run.seed, run.judgement.verdict);
}

//! What every committed suite must state so that its verdicts hold.

#![allow(clippy::expect_used, reason = "a test stops where something is amiss")]

use std::fs;
use std::path::{Path, PathBuf};

use dyno_record::Size;
use dyno_suite::{Definition, Planned};

/// Blocks of a case at the sizes that are published.
const REPEATS_MIN: u32 = 8;

fn suites() -> Vec<Definition> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../suites");
    let entries = fs::read_dir(folder).expect("the suites");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let is_suite = |path: &PathBuf| path.extension().is_some_and(|end| end == "toml");
    let suites: Vec<Definition> = paths
        .filter(is_suite)
        .map(|path| Definition::read(&path).expect("a suite").on_cores(2))
        .collect();
    assert!(suites.len() > 5);
    suites
}

fn planned(suite: &Definition, size: Size) -> Planned {
    Planned::new(suite, size, &suite.peers()).expect("a plan")
}

#[test]
fn every_case_has_enough_blocks_and_a_control_arm() {
    for suite in suites() {
        for size in [Size::Quick, Size::Full] {
            for case in planned(&suite, size).plan.cases {
                let at = format!("{} {size:?} {}", suite.name, case.name);
                assert!(case.repeats >= REPEATS_MIN, "{at}: {} blocks", case.repeats);
                assert!(case.control, "{at}: no control arm");
            }
        }
        // The tiny size proves that a suite runs, and judges nothing.
        let tiny = planned(&suite, Size::Tiny).plan.cases;
        assert!(tiny.iter().all(|case| !case.control), "{}", suite.name);
    }
}

#[test]
fn every_budget_holds_what_the_suite_is_estimated_to_take() {
    let mut over = Vec::new();
    for suite in suites() {
        for size in [Size::Quick, Size::Full] {
            let planned = planned(&suite, size);
            let (takes, budget) = (planned.needs(&|_, _| true).run_s, planned.budget_s);
            println!("{} {size:?}: {takes:.0} s of {budget} s", suite.name);
            if takes > budget {
                over.push(format!(
                    "{} {size:?}: {takes:.0} s of {budget} s",
                    suite.name
                ));
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

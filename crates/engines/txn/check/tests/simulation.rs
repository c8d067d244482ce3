//! The whole cluster from seeds. `DYNO_SIM_FROM` and `DYNO_SIM_SEEDS` choose others.

use std::sync::atomic::AtomicBool;

use dyno_txn_check::simulate::{Options, Run, many, simulate};

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |n| n.parse().expect("a number"))
}

/// What helps to find a cause: the rules, some sentences, and the history as a file.
fn describe(run: &Run) -> String {
    let kept = run.keep(&std::env::temp_dir());
    let verdict = &run.judgement.verdict;
    let mut text = format!("seed {}: {:?}\n{}\n", run.seed, verdict.broken, run.about);
    for violation in verdict.violations.iter().take(4) {
        text.push_str(&format!("{:?}: {violation}\n", violation.rule));
    }
    text + &format!("history: {kept:?}")
}

fn expect_all_to_hold(from: u64, seeds: u64) {
    let options = Options {
        patient: number("DYNO_SIM_PATIENT", 0) == 1,
        ..Options::default()
    };
    let ran = many(from, seeds, 1, &options, &AtomicBool::new(false));
    println!(
        "{seeds} seeds from {from}: {} transactions committed, {} failed, {} unknown, {} crashes, {} takeovers",
        ran.committed, ran.failed, ran.unknown, ran.crashes, ran.takeovers
    );
    assert_eq!(ran.seeds, seeds);
    // Every third cluster has no oracles of its own, each of the others at least the first one.
    assert!(
        seeds < 100 || ran.takeovers > seeds,
        "failovers are rare: {} in {seeds} seeds",
        ran.takeovers
    );
    let first = ran.broken.first().map(describe).unwrap_or_default();
    assert!(
        ran.broken_seeds.is_empty(),
        "{first}\nall that failed: {:?}",
        ran.broken_seeds
    );
}

#[test]
fn one_seed_is_one_run() {
    for seed in [1, 2, 3] {
        let first = simulate(seed, &Options::default());
        let second = simulate(seed, &Options::default());
        assert_eq!(
            (first.hash, first.events),
            (second.hash, second.events),
            "seed {seed}"
        );
        assert_eq!(first.history, second.history);
    }
}

#[test]
fn hundreds_of_seeds_hold() {
    expect_all_to_hold(number("DYNO_SIM_FROM", 1), number("DYNO_SIM_SEEDS", 300));
}

#[test]
#[ignore = "takes some minutes: before a release, and after a change to the protocol"]
fn ten_thousand_seeds_hold() {
    expect_all_to_hold(number("DYNO_SIM_FROM", 1), number("DYNO_SIM_SEEDS", 10_000));
}

//! The whole cluster from seeds. `DYNO_SIM_FROM` and `DYNO_SIM_SEEDS` choose others.

use dyno_txn_check::simulate::{Options, Run, simulate};

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |n| n.parse().expect("a number"))
}

/// What helps to find a cause: the rules, some sentences, and the history as a file.
fn describe(run: &Run) -> String {
    let path = std::env::temp_dir().join(format!("dyno-txn-seed-{}.ndjson", run.seed));
    let saved = run
        .history
        .save(&path, &format!("simulation, seed {}", run.seed));
    let verdict = &run.judgement.verdict;
    let mut text = format!("seed {}: {:?}\n{}\n", run.seed, verdict.broken, run.about);
    for violation in verdict.violations.iter().take(4) {
        text.push_str(&format!("{:?}: {violation}\n", violation.rule));
    }
    text + &format!("history: {} {saved:?}", path.display())
}

fn expect_all_to_hold(from: u64, seeds: u64) {
    let mut failed: Vec<Run> = Vec::new();
    let (mut committed, mut without, mut unknown, mut crashes) = (0, 0, 0, 0);
    for seed in from..from + seeds {
        let options = Options {
            patient: number("DYNO_SIM_PATIENT", 0) == 1,
            ..Options::default()
        };
        let run = simulate(seed, &options);
        committed += run.judgement.committed;
        without += run.judgement.failed;
        unknown += run.judgement.unknown;
        crashes += run.crashes;
        if !run.holds() {
            failed.push(run);
        }
    }
    println!(
        "{seeds} seeds from {from}: {committed} transactions committed, {without} failed, \
         {unknown} unknown, {crashes} crashes"
    );
    let which: Vec<_> = failed
        .iter()
        .map(|run| (run.seed, &run.judgement.verdict.broken))
        .collect();
    assert!(
        failed.is_empty(),
        "{}\nall that failed: {which:?}",
        describe(&failed[0])
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

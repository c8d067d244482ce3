//! The whole cluster from seeds.

use dyno_txn_check::simulate::{Options, Run, simulate};

/// Prints what helps to find a cause, and fails.
fn fail(run: &Run) -> ! {
    let path = std::env::temp_dir().join(format!("dyno-txn-seed-{}.ndjson", run.seed));
    let saved = run
        .history
        .save(&path, &format!("simulation, seed {}", run.seed));
    panic!(
        "seed {}:\n{}history: {path:?} {saved:?}",
        run.seed, run.judgement.verdict
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
fn seeds_hold() {
    let seeds: u64 = std::env::var("DYNO_SIM_SEEDS").map_or(20, |n| n.parse().expect("a number"));
    let from: u64 = std::env::var("DYNO_SIM_FROM").map_or(1, |n| n.parse().expect("a number"));
    let (mut committed, mut unknown, mut crashes) = (0, 0, 0);
    for seed in from..from + seeds {
        let run = simulate(seed, &Options::default());
        if std::env::var_os("DYNO_SIM_SAY").is_some() {
            println!(
                "{seed}: {:?} {} events, {} crashes",
                (
                    run.judgement.committed,
                    run.judgement.failed,
                    run.judgement.unknown,
                    run.judgement.audits
                ),
                run.events,
                run.crashes
            );
        }
        if !run.holds() {
            fail(&run);
        }
        committed += run.judgement.committed;
        unknown += run.judgement.unknown;
        crashes += run.crashes;
    }
    println!("{seeds} seeds: {committed} committed, {unknown} unknown, {crashes} crashes");
}

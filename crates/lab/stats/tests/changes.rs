//! How often a change is called in a series that has none, and how often a real one is found, on
//! noise whose truth is known.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

use dyno_random::Random;
use dyno_stats::{ChangePoint, change_points, normal};

const TRIALS: usize = 1_000;

/// What runs of one program on one machine show.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// Each run scatters by 3%.
    Lognormal,
    /// One run in three lies in a mode that is 10% slower.
    Bimodal,
    /// Each run scatters by 2%, and one in ten is up to 50% slower.
    Outliers,
}

fn noisy(random: &mut Random, noise: Noise) -> f64 {
    let log = match noise {
        Noise::Lognormal => 0.03 * normal(random),
        Noise::Bimodal if random.one_in(3) => 0.10 + 0.01 * normal(random),
        Noise::Bimodal => 0.01 * normal(random),
        Noise::Outliers if random.one_in(10) => 0.4 * random.fraction(),
        Noise::Outliers => 0.02 * normal(random),
    };
    log.exp()
}

/// The changes of `runs` runs, of which the newest `newer` take `step` longer.
fn changes(
    random: &mut Random,
    noise: Noise,
    runs: usize,
    newer: usize,
    step: f64,
) -> Vec<ChangePoint> {
    let values: Vec<f64> = (0..runs)
        .map(|run| {
            let factor = if run + newer >= runs { 1.0 + step } else { 1.0 };
            factor * noisy(random, noise)
        })
        .collect();
    change_points(&values, random.bits()).unwrap()
}

#[test]
fn an_unchanged_series_rarely_has_a_change() {
    let mut random = Random::new(2030);
    for noise in [Noise::Lognormal, Noise::Bimodal, Noise::Outliers] {
        for runs in [8, 12, 30] {
            let alarms =
                (0..TRIALS).filter(|_| !changes(&mut random, noise, runs, 0, 0.0).is_empty());
            let alarms = alarms.count() as f64 / TRIALS as f64;
            println!("{noise:?}, {runs} runs: {alarms:.3}");
            assert!(alarms <= 0.05, "{noise:?}, {runs} runs: {alarms}");
        }
    }
}

#[test]
fn a_step_of_a_tenth_is_found_at_its_place() {
    let mut random = Random::new(2031);
    for (runs, newer, least) in [
        (12, 2, 0.5),
        (12, 3, 0.7),
        (20, 3, 0.9),
        (20, 10, 0.99),
        (30, 15, 0.99),
    ] {
        let (mut found, mut exact) = (0, 0);
        for _ in 0..TRIALS / 4 {
            let seen = changes(&mut random, Noise::Lognormal, runs, newer, 0.10);
            let place = |point: &ChangePoint| point.at.abs_diff(runs - newer);
            found += usize::from(seen.iter().any(|point| place(point) <= 2));
            exact += usize::from(seen.iter().any(|point| place(point) == 0));
        }
        let share = |count: usize| count as f64 / (TRIALS / 4) as f64;
        println!(
            "{runs} runs, {newer} newer: found {:.3}, exactly {:.3}",
            share(found),
            share(exact)
        );
        assert!(
            share(found) >= least,
            "{runs} runs, {newer} newer: {}",
            share(found)
        );
    }
}

/// The newest run alone never makes a change, however large it is.
#[test]
fn one_run_is_never_a_change() {
    let mut random = Random::new(2032);
    for step in [0.1, 1.0, 100.0] {
        let seen = (0..50).map(|_| changes(&mut random, Noise::Lognormal, 20, 1, step));
        let of_last = seen.flatten().filter(|point| point.at >= 18).count();
        assert!(of_last <= 2, "{of_last} of 50 at a step of {step}");
    }
}

/// Seven runs are too few for any cut to be rarer than chance; eight can have one.
#[test]
fn eight_runs_are_the_fewest_that_can_show_a_change() {
    let step = |runs: usize| -> Vec<f64> {
        let half = runs / 2;
        (0..runs)
            .map(|run| if run < half { 1.0 } else { 2.0 } + run as f64 * 1e-6)
            .collect()
    };
    for seed in 0..20 {
        assert_eq!(change_points(&step(7), seed).unwrap(), []);
    }
    let found = (0..20).filter(|seed| change_points(&step(8), *seed).unwrap().len() == 1);
    assert!(found.count() >= 18);
}

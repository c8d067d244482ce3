//! How often the verdicts are wrong, and how often they see a difference, on simulated runs whose
//! truth is known.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

use dyno_random::Random;
use dyno_stats::{
    Better, EqualPrograms, Noise, NoiseBand, SimulatedRun, Verdict, compare_runs, equal_programs,
    holm, noise_between, normal, smallest_effect_seen,
};

const SIZES: [usize; 4] = [5, 6, 8, 10];
const TRIALS: usize = 2_000;

fn band_of(run: &SimulatedRun) -> NoiseBand {
    run.band().expect("good blocks")
}

fn share(count: usize) -> f64 {
    count as f64 / TRIALS as f64
}

#[test]
fn false_alarms_and_coverage_against_a_peer() {
    let mut random = Random::new(2026);
    for noise in Noise::ALL {
        for n in SIZES {
            let EqualPrograms {
                alarms,
                alone,
                covered,
            } = equal_programs(&mut random, noise, n, TRIALS);
            println!("{noise:?} n={n}: alarms {alarms:.4}, alone {alone:.4}, covered {covered:.3}");
            assert!(alarms <= 0.05, "{noise:?}, n = {n}: {alarms}");
            // Five blocks attain 93.75% at most, and the order of two pairs of them is all that
            // makes a lasting mood fair.
            let least = if n == 5 { 0.92 } else { 0.93 };
            assert!(covered >= least, "{noise:?}, n = {n}: {covered}");
            // Balanced pairs cancel a drift, which leaves its interval wider than it need be.
            if noise != Noise::Drifting {
                assert!(covered <= 0.98, "{noise:?}, n = {n}: {covered}");
            }
        }
    }
}

#[test]
fn the_stated_smallest_effect_is_seen_in_about_four_runs_of_five() {
    let mut random = Random::new(2027);
    for noise in Noise::ALL {
        for n in SIZES {
            let (effect, power) = smallest_effect_seen(&mut random, noise, n, TRIALS / 2);
            println!(
                "{noise:?} n={n}: effect {:.1}%, power {:.2}",
                100.0 * effect,
                power
            );
            assert!(power >= 0.70, "{noise:?}, n = {n}: {power}");
        }
    }
}

/// The rule of a gate: an older run, a newer one and the newer program once more, each on a day of
/// its own, which moves all its times by 3%. What did not change (the peer, and the newer program
/// between its two runs) tells the drift. A slowdown must be shown in both.
#[test]
fn false_alarms_of_a_gate() {
    let mut random = Random::new(2028);
    for noise in Noise::ALL {
        for n in SIZES {
            let (mut alone, mut both) = (0, 0);
            for _ in 0..TRIALS {
                let [base, new, again] = [(); 3].map(|()| a_day(&mut random, noise, n));
                let own = noise_between(&new.ours, &again.ours).unwrap();
                let slower = |new: &SimulatedRun| {
                    let drift = noise_between(&base.peer, &new.peer).unwrap();
                    let band = drift
                        .widest(own)
                        .widest(band_of(&base))
                        .widest(band_of(new));
                    let seen = compare_runs(&new.ours, &base.ours, Better::Lower, Some(&band));
                    seen.unwrap().verdict == Verdict::Slower
                };
                let seen = (slower(&new), slower(&again));
                alone += usize::from(seen.0);
                both += usize::from(seen.0 && seen.1);
            }
            let (alone, both) = (share(alone), share(both));
            println!("{noise:?} n={n}: slower in one run {alone:.4}, in both {both:.4}");
            assert!(both <= 0.05, "{noise:?}, n = {n}: {both}");
        }
    }
}

fn a_day(random: &mut Random, noise: Noise, n: usize) -> SimulatedRun {
    let mut run = SimulatedRun::new(random, noise, n, 0.0);
    let day = (0.03 * normal(random)).exp();
    let all = run
        .ours
        .iter_mut()
        .chain(&mut run.control)
        .chain(&mut run.peer);
    all.for_each(|time| *time *= day);
    run
}

/// With 20 cases, one of them false somewhere: Holm keeps the whole family at 5%.
#[test]
fn false_alarms_of_a_family_of_cases() {
    let mut random = Random::new(2029);
    for n in [6, 8, 10] {
        let (mut alone, mut corrected) = (0, 0);
        for _ in 0..TRIALS / 4 {
            let p_values: Vec<f64> = (0..20)
                .map(|_| {
                    let a = Noise::Lognormal.series(&mut random, n);
                    let b = Noise::Lognormal.series(&mut random, n);
                    let times = |logs: Vec<f64>| logs.iter().map(|x| x.exp()).collect::<Vec<_>>();
                    let seen = compare_runs(&times(a), &times(b), Better::Lower, None);
                    seen.unwrap().p_value
                })
                .collect();
            alone += 4 * usize::from(p_values.iter().any(|p| *p <= 0.05));
            corrected += 4 * usize::from(holm(&p_values).iter().any(|p| *p <= 0.05));
        }
        println!(
            "20 cases, n={n}: {:.3} alone, {:.3} with Holm",
            share(alone),
            share(corrected)
        );
        assert!(share(alone) > 0.3 && share(corrected) <= 0.07);
    }
}

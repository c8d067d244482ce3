//! What the rules of steadiness say of rates whose truth is known.

use dyno_random::Random;
use dyno_stats::{Steadiness, SteadyOptions, Trend, steady_from, trend};

/// Nearly normal with mean 0 and deviation 1: the sum of twelve uniforms.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0
}

/// What a machine does to rates.
#[derive(Debug, Clone, Copy)]
struct Noise {
    /// Deviation of the logarithm of a window.
    scatter: f64,
    /// How much a window resembles the one before it.
    resemblance: f64,
    /// Share of the windows in which something else takes 30% to 80% of the machine.
    stalls: f64,
}

/// 40 windows whose true rate falls evenly by the share `fall` from the first to the last.
fn run(random: &mut Random, noise: Noise, fall: f64) -> Vec<f64> {
    let own = (1.0 - noise.resemblance.powi(2)).sqrt();
    let mut x = normal(random);
    (0..40)
        .map(|i| {
            x = noise.resemblance * x + own * normal(random);
            let stalled = if random.fraction() < noise.stalls {
                0.2 + 0.5 * random.fraction()
            } else {
                1.0
            };
            1e5 * (1.0 - fall * f64::from(i) / 39.0) * (noise.scatter * x).exp() * stalled
        })
        .collect()
}

/// Shares of trials in which `count` runs together are called not steady, and too uneven.
fn called(random: &mut Random, count: usize, noise: Noise, fall: f64) -> (f64, f64) {
    const TRIALS: usize = 200;
    let options = SteadyOptions::default();
    let (mut not_steady, mut uneven) = (0, 0);
    for _ in 0..TRIALS {
        let runs: Vec<Vec<f64>> = (0..count).map(|_| run(random, noise, fall)).collect();
        match judge(&runs, &options).1 {
            Steadiness::NotSteady => not_steady += 1,
            Steadiness::TooUneven => uneven += 1,
            Steadiness::Steady => {}
        }
    }
    let share = |number: usize| number as f64 / TRIALS as f64;
    (share(not_steady), share(uneven))
}

fn judge(runs: &[Vec<f64>], options: &SteadyOptions) -> (Trend, Steadiness) {
    let windows: Vec<&[f64]> = runs.iter().map(Vec::as_slice).collect();
    let seen = trend(&windows, options).expect("enough windows");
    (seen, seen.judge(options))
}

const QUIET: Noise = Noise {
    scatter: 0.05,
    resemblance: 0.3,
    stalls: 0.0,
};
const SHARED: Noise = Noise {
    scatter: 0.10,
    resemblance: 0.6,
    stalls: 0.05,
};

#[test]
fn noise_is_rarely_called_a_trend() {
    let mut random = Random::new(2026);
    for count in [1, 5] {
        for scatter in [0.02, 0.05, 0.10] {
            for resemblance in [0.0, 0.3, 0.6, 0.8] {
                for stalls in [0.0, 0.05] {
                    let noise = Noise {
                        scatter,
                        resemblance,
                        stalls,
                    };
                    let (alarms, _) = called(&mut random, count, noise, 0.0);
                    let most = if resemblance > 0.7 { 0.10 } else { 0.05 };
                    assert!(alarms <= most, "{count} runs, {noise:?}: {alarms}");
                }
            }
        }
    }
}

#[test]
fn a_fall_by_a_fifth_is_noticed_or_said_to_be_beyond_notice() {
    let mut random = Random::new(2027);
    for (count, noise, least) in [
        (1, QUIET, 0.90),
        (5, QUIET, 0.99),
        (3, SHARED, 0.60),
        (5, SHARED, 0.80),
    ] {
        let (noticed, _) = called(&mut random, count, noise, 0.2);
        assert!(noticed >= least, "{count} runs, {noise:?}: {noticed}");
    }
    // Where a fifth cannot be told from noise, no run is called steady.
    let wild = Noise {
        scatter: 0.4,
        ..SHARED
    };
    let (noticed, uneven) = called(&mut random, 1, wild, 0.2);
    assert!(noticed + uneven > 0.95, "{noticed} and {uneven}");
}

#[test]
fn a_burst_that_slows_down_is_not_steady() {
    // The shape of TPC-C on a database that costs more with each transaction: a quarter is left at
    // the end, and most of the fall comes first.
    let mut random = Random::new(2028);
    for noise in [QUIET, SHARED] {
        for _ in 0..20 {
            let mut windows = run(&mut random, noise, 0.0);
            for (i, rate) in windows.iter_mut().enumerate() {
                *rate /= 1.0 + 3.0 * i as f64 / 39.0;
            }
            let (trend, verdict) = judge(&[windows], &SteadyOptions::default());
            assert_eq!(verdict, Steadiness::NotSteady, "{trend:?}");
            assert!(trend.change < -0.4, "{trend:?}");
        }
    }
}

#[test]
fn a_level_run_with_one_stall_is_steady() {
    let mut windows = vec![100.0; 24];
    for (i, rate) in windows.iter_mut().enumerate() {
        *rate += [0.0, 1.5, -1.0, 0.5, -0.7][i % 5];
    }
    windows[20] = 10.0;
    let (trend, verdict) = judge(&[windows], &SteadyOptions::default());
    assert!(trend.change < -0.05, "{trend:?}");
    assert_eq!(verdict, Steadiness::Steady, "{trend:?}");
}

#[test]
fn after_a_warm_up_it_is_steady_from_there() {
    let options = SteadyOptions::default();
    let mut random = Random::new(5);
    let runs: Vec<Vec<f64>> = (0..3)
        .map(|_| {
            let mut windows = run(&mut random, QUIET, 0.0);
            for (i, rate) in windows.iter_mut().take(8).enumerate() {
                *rate *= 0.2 + 0.1 * i as f64;
            }
            windows
        })
        .collect();
    let windows: Vec<&[f64]> = runs.iter().map(Vec::as_slice).collect();
    assert_eq!(judge(&runs, &options).1, Steadiness::NotSteady);
    let from = steady_from(&windows, &options).expect("it settles");
    assert!((1..=8).contains(&from), "{from}");
    let falling: Vec<f64> = (0..40).map(|i| 100.0 - 2.0 * f64::from(i)).collect();
    assert_eq!(steady_from(&[&falling], &options), None);
    assert_eq!(steady_from(&[], &options), None);
}

#[test]
fn rates_that_are_all_equal_or_zero_are_level() {
    for rate in [0.0, 500.0] {
        let (trend, verdict) = judge(&[vec![rate; 20]], &SteadyOptions::default());
        assert_eq!(verdict, Steadiness::Steady, "{trend:?}");
        assert_eq!((trend.change, trend.z), (0.0, 0.0));
    }
    assert!(trend(&[&[1.0; 5]], &SteadyOptions::default()).is_err());
}

//! What a comparison says about data whose truth is known.

use dyno_stats::{
    Better, Block, CompareOptions, NoiseBand, Random, StatsError, Verdict, compare, noise_band,
};
use proptest::prelude::*;

/// Nearly normal with mean 0 and deviation 1: the sum of twelve uniforms.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// Blocks whose A has the mean `effect` and whose B has 1, with `noise` on each invocation, half
/// of that on each window, and a mood of the machine that the arms of a block share.
fn blocks(random: &mut Random, n: usize, windows: usize, effect: f64, noise: f64) -> Vec<Block> {
    (0..n)
        .map(|_| {
            let mood = 0.05 * normal(random);
            let mut arm = |mean: f64| -> Vec<f64> {
                let invocation = noise * normal(random);
                (0..windows)
                    .map(|_| mean * (mood + invocation + noise / 2.0 * normal(random)).exp())
                    .collect()
            };
            Block {
                a: arm(effect),
                b: arm(1.0),
            }
        })
        .collect()
}

fn named(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

#[test]
fn identical_arms_are_rarely_told_apart() {
    // No band at all, so that the interval alone is on trial, then with a measured one.
    let mut random = Random::new(2026);
    let (trials, mut bare, mut banded) = (400, 0, 0);
    for seed in 0..trials {
        let windows = if seed % 2 == 0 { 1 } else { 4 };
        let data = blocks(&mut random, 10, windows, 1.0, 0.03);
        let control = blocks(&mut random, 10, windows, 1.0, 0.03);
        let options = CompareOptions {
            seed,
            ..CompareOptions::default()
        };
        let none = compare(&data, &NoiseBand::floor(0.0), &options).unwrap();
        let band = noise_band(&control, 0.01, seed).unwrap();
        bare += u32::from(named(none.verdict));
        banded += u32::from(named(compare(&data, &band, &options).unwrap().verdict));
    }
    let rate = |count: u32| f64::from(count) / trials as f64;
    assert!(rate(bare) <= 0.07, "without a band {} of {trials}", bare);
    assert!(rate(banded) <= 0.03, "with a band {} of {trials}", banded);
}

#[test]
fn randomisation_p_values_are_even_on_identical_arms() {
    let mut random = Random::new(5);
    let below = (0..400)
        .filter(|_| {
            let data = blocks(&mut random, 10, 1, 1.0, 0.03);
            let seen = compare(&data, &NoiseBand::floor(0.0), &CompareOptions::default());
            seen.unwrap().p_value <= 0.05
        })
        .count();
    assert!(
        (5..=35).contains(&below),
        "{below} of 400, expected about 20"
    );
}

#[test]
fn a_clear_difference_is_found() {
    let mut random = Random::new(9);
    let found = (0..100)
        .filter(|_| {
            let data = blocks(&mut random, 10, 3, 1.10, 0.02);
            let band = NoiseBand::floor(0.02);
            let seen = compare(&data, &band, &CompareOptions::default()).unwrap();
            seen.verdict == Verdict::Faster && seen.interval.contains(1.10)
        })
        .count();
    assert!(found >= 85, "{found} of 100");
}

#[test]
fn ratio_by_hand() {
    // Medians 20 and 10, in every block A is the double of B.
    let data: Vec<Block> = [8.0, 9.0, 10.0, 11.0, 12.0]
        .iter()
        .map(|&b| Block::single(2.0 * b, b))
        .collect();
    let seen = compare(&data, &NoiseBand::floor(0.01), &CompareOptions::default()).unwrap();
    assert!((seen.ratio - 2.0).abs() < 1e-12);
    assert_eq!((seen.superiority, seen.verdict), (1.0, Verdict::Faster));
    assert_eq!(seen.p_value, 2.0 / 32.0);
    let lower = CompareOptions {
        better: Better::Lower,
        ..CompareOptions::default()
    };
    let seen = compare(&data, &NoiseBand::floor(0.01), &lower).unwrap();
    assert!((seen.ratio - 0.5).abs() < 1e-12);
    assert_eq!((seen.superiority, seen.verdict), (0.0, Verdict::Slower));
}

#[test]
fn few_blocks_name_no_winner() {
    let data = vec![Block::single(3.0, 1.0); 4];
    let seen = compare(&data, &NoiseBand::floor(0.01), &CompareOptions::default()).unwrap();
    assert_eq!(seen.verdict, Verdict::NotJudged);
    assert_eq!(seen.reason, "n = 4, and a verdict needs 5");
    let told = CompareOptions {
        blocks_min: 3,
        ..CompareOptions::default()
    };
    assert_eq!(
        compare(&data, &NoiseBand::floor(0.01), &told)
            .unwrap()
            .verdict,
        Verdict::Faster
    );
}

#[test]
fn a_winner_inside_the_band_is_never_named() {
    let data = vec![Block::single(1.02, 1.0); 12];
    let seen = compare(&data, &NoiseBand::floor(0.03), &CompareOptions::default()).unwrap();
    assert_eq!(seen.verdict, Verdict::NoDifference);
    assert_eq!(seen.reason, "inside the noise band of 3.0%");
}

#[test]
fn uneven_data_are_called_unstable() {
    let wide: Vec<Block> = [0.5, 2.0, 0.6, 1.9, 0.4, 2.2, 1.0]
        .iter()
        .map(|&a| Block::single(a, 1.0))
        .collect();
    let seen = compare(&wide, &NoiseBand::floor(0.01), &CompareOptions::default()).unwrap();
    assert_eq!(seen.verdict, Verdict::Unstable, "{seen:?}");
    let modes: Vec<Block> = (0..12)
        .map(|i| {
            Block::single(
                if i % 2 == 0 { 1.0 } else { 1.2 } + f64::from(i) * 1e-3,
                1.1,
            )
        })
        .collect();
    let seen = compare(&modes, &NoiseBand::floor(0.01), &CompareOptions::default()).unwrap();
    assert_eq!(
        (seen.verdict, seen.reason.as_str()),
        (Verdict::Unstable, "the samples fall into two modes")
    );
}

#[test]
fn correction_takes_a_weak_winner_back() {
    assert_eq!(Verdict::Faster.corrected(0.2, 0.05), Verdict::NoDifference);
    assert_eq!(Verdict::Slower.corrected(0.01, 0.05), Verdict::Slower);
    assert_eq!(Verdict::Unstable.corrected(0.2, 0.05), Verdict::Unstable);
}

#[test]
fn broken_blocks_are_named() {
    let options = CompareOptions::default();
    let band = NoiseBand::floor(0.01);
    let data = [Block::single(1.0, 1.0), Block::single(0.0, 1.0)];
    let error = compare(&data, &band, &options).unwrap_err();
    assert_eq!(
        error,
        StatsError::NotPositive {
            block: 1,
            value: 0.0
        }
    );
    assert!(compare(&[], &band, &options).is_err());
    assert!(
        compare(
            &[Block {
                a: vec![],
                b: vec![1.0]
            }],
            &band,
            &options
        )
        .is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn swapping_the_arms_gives_the_reciprocal(
        data in prop::collection::vec(
            (prop::collection::vec(0.1f64..10.0, 1..4), prop::collection::vec(0.1f64..10.0, 1..4)), 1..14),
        seed: u64,
    ) {
        let there: Vec<Block> = data.iter().map(|(a, b)| Block { a: a.clone(), b: b.clone() }).collect();
        let back: Vec<Block> = data.iter().map(|(a, b)| Block { a: b.clone(), b: a.clone() }).collect();
        let options = CompareOptions { seed, ..CompareOptions::default() };
        let band = NoiseBand::floor(0.01);
        let x = compare(&there, &band, &options).unwrap();
        let y = compare(&back, &band, &options).unwrap();
        prop_assert!((x.ratio * y.ratio - 1.0).abs() < 1e-9);
        prop_assert!((x.interval.low * y.interval.high - 1.0).abs() < 1e-9);
        prop_assert!((x.interval.high * y.interval.low - 1.0).abs() < 1e-9);
        prop_assert!((x.superiority + y.superiority - 1.0).abs() < 1e-9);
        prop_assert!((x.p_value - y.p_value).abs() < 1e-3);
        prop_assert!(x.interval.contains(x.ratio));
    }
}

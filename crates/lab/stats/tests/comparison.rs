//! What a comparison says of data that can be worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

use dyno_stats::{
    Better, Block, Comparison, NoiseBand, StatsError, Verdict, compare, compare_runs, noise_band,
    noise_between,
};
use proptest::prelude::*;

fn blocks(pairs: impl IntoIterator<Item = (f64, f64)>) -> Vec<Block> {
    pairs.into_iter().map(|(a, b)| Block { a, b }).collect()
}

/// The band of a machine whose control arm agreed within 1%.
fn quiet() -> NoiseBand {
    noise_band(&blocks([(1.0, 1.0); 12])).expect("good blocks")
}

fn judged(data: &[Block], better: Better) -> Comparison {
    compare(data, better, Some(&quiet())).expect("good blocks")
}

#[test]
fn ratio_by_hand() {
    // Medians 20 and 10, in every block A is the double of B.
    let data = blocks([8.0, 9.0, 10.0, 11.0, 12.0].map(|b| (2.0 * b, b)));
    let seen = judged(&data, Better::Higher);
    assert!((seen.ratio - 2.0).abs() < 1e-12);
    assert_eq!((seen.n, seen.verdict), (5, Verdict::Faster));
    assert_eq!(seen.p_value, 2.0 / 32.0);
    let seen = judged(&data, Better::Lower);
    assert!((seen.ratio - 0.5).abs() < 1e-12);
    assert_eq!(seen.verdict, Verdict::Slower);
}

#[test]
fn what_could_show_nothing_is_not_judged() {
    let verdict_and_reason = |n: usize, band: Option<&NoiseBand>| {
        let seen = compare(&blocks(vec![(3.0, 1.0); n]), Better::Higher, band).unwrap();
        (seen.verdict, seen.reason)
    };
    let band = quiet();
    let (verdict, reason) = verdict_and_reason(4, Some(&band));
    assert_eq!(verdict, Verdict::NotJudged);
    assert_eq!(reason, "n = 4, and a verdict needs 5");
    let (verdict, reason) = verdict_and_reason(12, None);
    assert_eq!(verdict, Verdict::NotJudged);
    assert_eq!(
        reason,
        "no control arm ran, so the noise of this case is not known"
    );
    let thin = noise_band(&blocks([(1.0, 1.0); 3])).unwrap();
    let (verdict, reason) = verdict_and_reason(12, Some(&thin));
    assert_eq!(verdict, Verdict::NotJudged);
    assert_eq!(reason, "n = 3 in the control arm, and a verdict needs 5");
    assert_eq!(verdict_and_reason(5, Some(&band)).0, Verdict::Faster);
}

#[test]
fn a_winner_inside_the_band_is_never_named() {
    let band = noise_band(&blocks([1.0, 1.03, 1.0, 0.99, 1.0].map(|a| (a, 1.0)))).unwrap();
    let data = blocks([(1.02, 1.0); 12]);
    let seen = compare(&data, Better::Higher, Some(&band)).unwrap();
    assert_eq!(seen.verdict, Verdict::NoDifference);
    assert_eq!(seen.reason, "inside the noise band of ±3.0%");
}

#[test]
fn uneven_data_are_called_unstable() {
    let wide = blocks([0.5, 2.0, 0.6, 1.9, 0.4, 2.2, 1.0].map(|a| (a, 1.0)));
    let seen = judged(&wide, Better::Higher);
    assert_eq!(seen.verdict, Verdict::Unstable, "{seen:?}");
    let modes = blocks((0..12).map(|i| {
        let mode = if i % 2 == 0 { 1.0 } else { 1.2 };
        (mode + f64::from(i) * 1e-3, 1.1)
    }));
    let seen = judged(&modes, Better::Higher);
    assert_eq!(
        (seen.verdict, seen.reason.as_str()),
        (Verdict::Unstable, "the samples fall into two modes")
    );
}

#[test]
fn two_runs_are_not_paired() {
    // In the order in which they stand every sample of one is above that of the other; as two
    // lists they are nearly the same.
    let older = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0];
    let newer = [101.5, 102.5, 103.5, 104.5, 105.5, 100.5];
    let band = noise_between(&older, &older).unwrap();
    let seen = compare_runs(&newer, &older, Better::Higher, Some(&band)).unwrap();
    assert_eq!(seen.verdict, Verdict::NoDifference, "{seen:?}");
    let seen = compare_runs(&older, &newer[..4], Better::Higher, Some(&band)).unwrap();
    assert_eq!((seen.n, seen.verdict), (4, Verdict::NotJudged));
}

#[test]
fn correction_takes_a_weak_winner_back() {
    assert_eq!(Verdict::Faster.corrected(0.2, 0.05), Verdict::NoDifference);
    assert_eq!(Verdict::Slower.corrected(0.01, 0.05), Verdict::Slower);
    assert_eq!(Verdict::Unstable.corrected(0.2, 0.05), Verdict::Unstable);
}

#[test]
fn broken_blocks_are_named() {
    let error = compare(&blocks([(1.0, 1.0), (0.0, 1.0)]), Better::Higher, None).unwrap_err();
    assert_eq!(
        error,
        StatsError::NotPositive {
            block: 1,
            value: 0.0
        }
    );
    assert!(compare(&[], Better::Higher, None).is_err());
    assert!(compare_runs(&[1.0], &[], Better::Higher, None).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn swapping_the_arms_gives_the_reciprocal(
        data in prop::collection::vec((0.1f64..10.0, 0.1f64..10.0), 1..14),
    ) {
        let there = blocks(data.clone());
        let back = blocks(data.into_iter().map(|(a, b)| (b, a)));
        let (x, y) = (judged(&there, Better::Higher), judged(&back, Better::Higher));
        prop_assert!((x.ratio * y.ratio - 1.0).abs() < 1e-9);
        prop_assert!((x.interval.low * y.interval.high - 1.0).abs() < 1e-9);
        prop_assert!((x.interval.high * y.interval.low - 1.0).abs() < 1e-9);
        prop_assert!((x.p_value - y.p_value).abs() < 1e-9);
        prop_assert!(x.interval.contains(x.ratio));
    }
}

//! The encoder against the slow decoder.

use proptest::prelude::*;

use super::slow_decoder::decode;
use super::{Integers, RUN};

/// Encodes, decodes and compares, and returns the bytes and the kinds of the runs.
fn check(values: &[i64], signed: bool) -> (usize, Vec<u64>) {
    let mut stream = Integers::new(signed);
    stream.append(values, |value| value);
    stream.end_run();
    let (decoded, kinds) = decode(&stream.stream.raw, signed);
    assert!(decoded == values, "{values:?} became {decoded:?}");
    (stream.stream.raw.len(), kinds)
}

#[test]
fn equal_values_take_four_bytes_a_run() {
    assert_eq!(check(&[7; RUN], true), (4, vec![3]));
    assert_eq!(check(&[7; 5], true), (2, vec![0]));
    assert_eq!(check(&[-7; 2], true), (3, vec![1]));
    assert_eq!(check(&[i64::MIN; 2], true).1, [1]);
}

#[test]
fn fixed_steps_take_a_few_bytes_a_run() {
    let keys: Vec<i64> = (0..512).map(|i| 1_000_000 - 3 * i).collect();
    assert_eq!(check(&keys, true), (6, vec![3]));
}

#[test]
fn sorted_keys_with_gaps_become_deltas() {
    let keys: Vec<i64> = (0..2048).map(|i| i / 4 % 8 + i / 32 * 32).collect();
    let (bytes, kinds) = check(&keys, true);
    assert!(kinds.iter().all(|&kind| kind != 1), "{kinds:?}");
    assert!(bytes < 2200, "{bytes}");
    check(&keys.iter().map(|key| -key).collect::<Vec<_>>(), true);
}

#[test]
fn outliers_are_patched() {
    let mut values: Vec<i64> = (0..512).map(|i| i * 7919 % 200 - 100).collect();
    values[3] = 1 << 40;
    values[500] = 1 << 39;
    let (bytes, kinds) = check(&values, true);
    assert_eq!(kinds, [2]);
    assert!(bytes < 540, "{bytes}");
}

#[test]
fn repetitions_among_others_become_runs_of_their_own() {
    let values: Vec<i64> = (0..512).map(|i| i / 100 * 7919 % 5 * 100_000).collect();
    let (bytes, _) = check(&values, false);
    assert!(bytes < 40, "{bytes}");
}

fn shapes() -> impl Strategy<Value = Vec<i64>> {
    let steps = prop_oneof![
        Just(0i64..1),
        Just(0..2),
        Just(-1..2),
        Just(0..300),
        Just(-70_000..1),
        Just(-(1 << 45)..(1 << 45)),
    ];
    let walks = (steps, any::<i32>()).prop_flat_map(|(range, first)| {
        prop::collection::vec(range, 0..1200).prop_map(move |steps| {
            let mut at = i64::from(first);
            steps
                .into_iter()
                .map(|step| {
                    at += step;
                    at
                })
                .collect()
        })
    });
    let widths = (0u32..64).prop_flat_map(|shift| {
        prop::collection::vec(any::<i64>().prop_map(move |value| value >> shift), 0..1200)
    });
    let spiky = (8u32..60).prop_flat_map(|shift| {
        let value =
            prop_oneof![60 => -100i64..100, 1 => any::<i64>().prop_map(move |v| v >> shift)];
        prop::collection::vec(value, 0..1200)
    });
    let repeats = prop::collection::vec((0i64..5, 1usize..40), 0..80).prop_map(|runs| {
        runs.into_iter()
            .flat_map(|(value, count)| std::iter::repeat_n(value * 1000, count))
            .collect()
    });
    prop_oneof![walks, widths, spiky, repeats]
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(values in shapes()) {
        check(&values, true);
        let unsigned: Vec<i64> = values.iter().map(|value| value & i64::MAX).collect();
        check(&unsigned, false);
    }

    #[test]
    fn batches_do_not_matter(values in shapes(), cut in 1usize..700) {
        let mut whole = Integers::new(true);
        whole.append(&values, |value| value);
        let mut pieces = Integers::new(true);
        for piece in values.chunks(cut) {
            pieces.append(piece, |value| value);
        }
        whole.end_run();
        pieces.end_run();
        prop_assert_eq!(whole.stream.raw, pieces.stream.raw);
    }
}

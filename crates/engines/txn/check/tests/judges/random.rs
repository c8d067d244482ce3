//! Random serial executions pass every judge, and one spoiled reading is found.

use super::story;
use dyno_sim::Random;
use dyno_txn_check::history::{History, Key, Op, Outcome, Transaction};
use dyno_txn_check::{cycles, replay};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_right_passes(seed in any::<u64>(), transactions in 1_u64..60) {
        let history = story::random(seed, transactions);
        let verdict = replay::judge(&history).expect("timestamps");
        prop_assert!(verdict.holds(), "{verdict}");
        let verdict = cycles::judge(&history);
        prop_assert!(verdict.holds(), "{verdict}");
    }

    #[test]
    fn a_reading_without_its_last_element_is_found(seed in any::<u64>(), transactions in 1_u64..60) {
        let mut history = story::random(seed, transactions);
        if story::spoil(&mut history, &mut Random::new(seed)) {
            let verdict = replay::judge(&history).expect("timestamps");
            prop_assert!(!verdict.holds());
        }
    }

    #[test]
    fn a_history_survives_its_file(seed in any::<u64>()) {
        let history = story::random(seed, 20);
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("history.ndjson");
        history.save(&path, "random").expect("saved");
        prop_assert_eq!(History::load(&path).expect("loaded"), history);
    }
}

/// A register's value elsewhere can be right only where an unknown outcome leaves room.
#[test]
fn a_register_with_the_value_of_another_moment_is_found() {
    let (mut swapped, mut missed) = (0, Vec::new());
    for seed in 0..400 {
        let mut history = story::random(seed, 40);
        if story::swap(&mut history, &mut Random::new(seed)) {
            swapped += 1;
            if replay::judge(&history).expect("timestamps").holds() {
                missed.push(seed);
            }
        }
    }
    assert!(
        swapped > 200 && missed.len() * 20 < swapped,
        "{swapped}: {missed:?}"
    );
}

#[test]
fn a_file_that_is_none_is_refused_with_its_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("history.ndjson");
    let header = r#"{"magic":"dyno-txn-history","version":1}"#;
    for (text, words) in [
        (String::new(), "line 1: this is not a history"),
        (
            header.replace(":1}", ":2}"),
            "version 2; this program reads up to 1",
        ),
        (
            header.replace("txn", "log"),
            "the magic is \"dyno-log-history\"",
        ),
        (format!("{header}\n{{\"t\":1}}\n"), "line 2"),
        (
            format!("{header}\n{{\"t\":1,\"at\":1,\"end\":\"ok\"}}\n"),
            "has not begun",
        ),
    ] {
        std::fs::write(&path, &text).expect("written");
        let error = History::load(&path).expect_err(&text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

/// Not a measurement: a judge that is not linear would take minutes here.
#[test]
fn a_long_history_is_judged_too() {
    let transactions = (1..=50_000).map(|id| Transaction {
        id,
        process: 0,
        begin_ns: id * 10,
        end_ns: Some(id * 10 + 25),
        outcome: Outcome::Ok,
        timestamp: Some(id * 10 + 9),
        ops: vec![
            Op::Read {
                key: Key::new(1, id),
                value: None,
            },
            Op::Append {
                key: Key::new(1, id),
                element: id,
            },
        ],
    });
    let history = History {
        transactions: transactions.collect(),
    };
    assert!(replay::judge(&history).expect("timestamps").holds());
    assert!(cycles::judge(&history).holds());
}

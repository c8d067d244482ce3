//! A checker that we did not write judges the same histories: `adya`, a Rust program after Elle.

use std::path::{Path, PathBuf};

use super::story;
use dyno_sim::Random;
use dyno_txn_check::cycles;
use dyno_txn_check::history::{History, Op};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/histories")
}

fn opinion(history: &History) -> adya::Report {
    let theirs = adya::History::from_json(&history.jepsen_lists()).expect("Jepsen's form");
    adya::check(&theirs, adya::Workload::ListAppend, &adya::Opts::default())
}

/// Bad histories of lists that lie beyond it: it believes no stamps, and calls a value that nobody wrote fine.
const BEYOND: [&str; 3] = ["bad-future-read", "bad-same-stamp", "bad-nobody"];

#[test]
fn it_rejects_the_bad_histories_of_lists_and_passes_the_good_ones() {
    let mut judged = 0;
    for entry in std::fs::read_dir(folder()).expect("the fixtures") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("a name");
        let lists = !std::fs::read_to_string(&path)
            .expect("text")
            .contains("\"k\":\"2/");
        let only_scans = ["bad-phantom", "bad-scan-order"].contains(&name);
        if !lists || only_scans {
            continue;
        }
        judged += 1;
        let report = opinion(&load(&path));
        let rejected = report.valid == adya::Valid::False;
        let expected = name.starts_with("bad") && !BEYOND.contains(&name);
        assert_eq!(rejected, expected, "{name}: {:?}", report.anomaly_types);
    }
    assert_eq!(judged, 19);
}

fn load(path: &Path) -> History {
    History::load(path).expect("a history")
}

#[test]
fn it_agrees_with_our_cycles_on_random_histories() {
    let mut both = (0, 0);
    for seed in 0..300 {
        let mut history = story::random(seed, 30);
        if seed % 3 != 0 {
            story::spoil(&mut history, &mut Random::new(seed));
        }
        for transaction in &mut history.transactions {
            let list = |op: &Op| matches!(op, Op::Read { key, .. } | Op::Append { key, .. } if key.table == 1);
            transaction.ops.retain(list);
        }
        let ours = cycles::judge(&history);
        let theirs = opinion(&history);
        let valid = theirs.valid != adya::Valid::False;
        assert_eq!(
            ours.holds(),
            valid,
            "seed {seed}: {ours}{:?}",
            theirs.anomaly_types
        );
        if valid {
            both.0 += 1;
        } else {
            both.1 += 1;
        }
    }
    assert!(
        both.0 > 50 && both.1 > 50,
        "too one-sided to say anything: {both:?}"
    );
}

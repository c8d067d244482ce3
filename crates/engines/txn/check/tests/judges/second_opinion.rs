//! A checker that we did not write judges the same histories: `adya`, a Rust program after Elle.

use std::path::{Path, PathBuf};

use super::story;
use dyno_sim::Random;
use dyno_txn_check::cycles;
use dyno_txn_check::history::{History, Op, Part};
use dyno_txn_check::simulate::{Options, simulate};
use dyno_txn_check::workload::LISTS;
use dyno_txn_core::planted::{Bug, Planted};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/histories")
}

fn opinion(history: &History) -> adya::Report {
    opinion_of(history, Part::Lists, adya::Workload::ListAppend)
}

/// Its opinion of both forms of the history, which must be one.
fn opinion_of(history: &History, part: Part, workload: adya::Workload) -> adya::Report {
    let history = history.for_elle(part);
    // It infers the order of versions of a register only from what it is told to believe. All three
    // follow from strict serializability.
    let options = adya::Opts {
        wfr_keys: true,
        sequential_keys: true,
        linearizable_keys: true,
        ..adya::Opts::default()
    };
    let json = adya::History::from_json(&history.to_json()).expect("Elle's form in JSON");
    let edn = adya::History::from_edn(&history.to_edn()).expect("Elle's form in EDN");
    let report = adya::check(&json, workload, &options);
    let again = adya::check(&edn, workload, &options);
    assert_eq!(report.valid, again.valid);
    assert_eq!(report.anomaly_types, again.anomaly_types);
    report
}

/// Bad histories of lists that lie beyond it: it believes no timestamps, and accepts a value that
/// no transaction wrote.
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
        keep_lists(&mut history, 1);
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

/// Leaves the reads of and appends to the lists of a table.
fn keep_lists(history: &mut History, table: u32) {
    let list =
        |op: &Op| matches!(op, Op::Read { key, .. } | Op::Append { key, .. } if key.table == table);
    for transaction in &mut history.transactions {
        transaction.ops.retain(list);
    }
}

#[test]
fn it_passes_simulated_clusters_and_rejects_one_with_a_planted_bug() {
    let rejects = |seed, planted| {
        let options = Options {
            planted,
            ..Options::default()
        };
        let mut history = simulate(seed, &options).history;
        keep_lists(&mut history, LISTS);
        let report = opinion(&history);
        (report.valid == adya::Valid::False).then_some(report.anomaly_types)
    };
    for seed in 1..=12 {
        assert_eq!(rejects(seed, Planted::none()), None, "seed {seed}");
    }
    let planted = Planted::one(Bug::ReadCache);
    assert!((1..=12).any(|seed| rejects(seed, planted).is_some()));
}

/// Bad histories of registers that lie beyond it, for the same reasons, and because a version is
/// named by its writer: which of its own versions a transaction showed to others is not told.
const REGISTERS_BEYOND: [&str; 2] = ["bad-register-future-read", "bad-register-intermediate-read"];

#[test]
fn it_passes_registers_of_simulated_clusters_and_rejects_bad_ones() {
    let rejected = |history: &History| {
        let report = opinion_of(history, Part::Registers, adya::Workload::RwRegister);
        (report.valid == adya::Valid::False).then_some(report.anomaly_types)
    };
    for seed in 1..=12 {
        let history = simulate(seed, &Options::default()).history;
        assert_eq!(rejected(&history), None, "seed {seed}");
    }
    let mut judged = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder()).expect("the fixtures") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.expect("a name");
        if !name.starts_with("bad-register") && name != "good-registers" {
            continue;
        }
        judged += 1;
        let expected = name.starts_with("bad") && !REGISTERS_BEYOND.contains(&name);
        let found = rejected(&load(&path));
        if found.is_some() != expected {
            wrong.push(format!("{name}: {found:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!(judged, 9);
}

//! Histories that are known to be good or bad, and what each judge says of them. A judge that lets
//! a bad one pass without a reason in this table is worth nothing.

use std::path::PathBuf;

use dyno_txn_check::bank::Bank;
use dyno_txn_check::history::{History, Key, Lookup, Op, Outcome, Transaction, Value};
use dyno_txn_check::{Rule, bank, cycles, replay};

fn load(name: &str) -> History {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    History::load(&folder.join(format!("{name}.ndjson"))).expect(name)
}

/// What the replay and the cycles must find at least; `None` where the anomaly lies beyond a judge.
struct BadHistory {
    name: &'static str,
    replay: Option<Rule>,
    cycles: Option<Rule>,
}

const fn bad(name: &'static str, replay: Rule, cycles: Rule) -> BadHistory {
    BadHistory {
        name,
        replay: Some(replay),
        cycles: Some(cycles),
    }
}

/// Wrong only by the order that the timestamps claim, or in what only a model knows.
const fn by_replay(name: &'static str, replay: Rule) -> BadHistory {
    BadHistory {
        name,
        replay: Some(replay),
        cycles: None,
    }
}

const BAD: &[BadHistory] = &[
    bad("lost-update", Rule::StaleRead, Rule::LostUpdate),
    bad("write-skew", Rule::StaleRead, Rule::G2),
    bad("long-fork", Rule::StaleRead, Rule::G2),
    bad("dirty-read", Rule::FutureRead, Rule::G1c),
    bad("aborted-read", Rule::AbortedRead, Rule::AbortedRead),
    bad(
        "intermediate-read",
        Rule::IntermediateRead,
        Rule::IntermediateRead,
    ),
    bad("real-time", Rule::Strictness, Rule::RealTime),
    bad("torn", Rule::StaleRead, Rule::GSingle),
    bad("torn-unknown", Rule::TornTransaction, Rule::RealTime),
    bad("torn-floating", Rule::TornTransaction, Rule::RealTime),
    by_replay("future-read", Rule::FutureRead),
    bad("own-writes", Rule::OwnWrites, Rule::OwnWrites),
    bad("duplicate", Rule::StaleRead, Rule::Duplicate),
    bad("orders", Rule::StaleRead, Rule::IncompatibleOrder),
    bad("dirty-write", Rule::StaleRead, Rule::G0),
    bad("nobody", Rule::UnwrittenValue, Rule::UnwrittenValue),
    by_replay("same-stamp", Rule::SameTimestamp),
    bad("register-lost-update", Rule::StaleRead, Rule::LostUpdate),
    bad("register-write-skew", Rule::StaleRead, Rule::G2),
    bad("register-long-fork", Rule::StaleRead, Rule::G2),
    bad(
        "register-aborted-read",
        Rule::AbortedRead,
        Rule::AbortedRead,
    ),
    bad(
        "register-intermediate-read",
        Rule::IntermediateRead,
        Rule::IntermediateRead,
    ),
    bad("register-real-time", Rule::Strictness, Rule::RealTime),
    bad("register-torn", Rule::StaleRead, Rule::GSingle),
    by_replay("register-future-read", Rule::FutureRead),
    bad("phantom", Rule::StaleRead, Rule::G2),
    bad("index", Rule::StaleRead, Rule::RealTime),
    by_replay("index-missing", Rule::StaleRead),
    bad("deleted", Rule::StaleRead, Rule::RealTime),
    by_replay("scan-order", Rule::ScanShape),
];

#[test]
fn every_judge_rejects_what_is_bad_and_names_the_transactions() {
    for BadHistory {
        name,
        replay,
        cycles,
    } in BAD
    {
        let history = load(&format!("bad-{name}"));
        let by_replay = replay::judge(&history).expect(name);
        let by_cycles = cycles::judge(&history);
        for (judge, expected, verdict) in
            [("replay", replay, by_replay), ("cycles", cycles, by_cycles)]
        {
            match expected {
                Some(rule) => {
                    assert!(
                        verdict.broken.contains_key(rule),
                        "{name}, {judge}: {verdict}"
                    );
                    let named = |v: &dyno_txn_check::Violation| v.sentence.contains('T');
                    assert!(
                        verdict.violations.iter().all(named),
                        "{name}, {judge}: {verdict}"
                    );
                }
                None => assert!(
                    verdict.holds(),
                    "{name}, {judge} finds more than it can: {verdict}"
                ),
            }
        }
    }
}

#[test]
fn every_judge_passes_what_is_good() {
    for name in ["lists", "unknown", "registers"] {
        let history = load(&format!("good-{name}"));
        let by_replay = replay::judge(&history).expect(name);
        assert!(by_replay.holds(), "{name}: {by_replay}");
        let by_cycles = cycles::judge(&history);
        assert!(by_cycles.holds(), "{name}: {by_cycles}");
    }
}

#[test]
fn a_bank_is_judged_by_every_snapshot_of_all_accounts() {
    let bank = |accounts, total| Bank {
        table: 2,
        accounts,
        total,
    };
    let (verdict, judged) = bank::judge(&load("good-registers"), bank(3, 30));
    assert_eq!((verdict.holds(), judged), (true, 2), "{verdict}");
    let (verdict, judged) = bank::judge(&load("bad-register-torn"), bank(2, 20));
    assert_eq!(
        (verdict.broken[&Rule::BankTotal], judged),
        (1, 2),
        "{verdict}"
    );
}

#[test]
fn all_known_histories_are_in_the_table() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let files = std::fs::read_dir(folder).expect("the fixtures").count();
    assert_eq!(files, BAD.len() + 3);
}

#[test]
fn a_cycle_is_told_step_by_step() {
    let verdict = cycles::judge(&load("bad-torn"));
    let expected = "GSingle: T1 -wr 1/1-> T2 -rw 1/2-> T1\n    \
        T1 (client 1, timestamp 10): append 1 to 1/1, append 1 to 1/2\n    \
        T2 (client 2, timestamp 20): read 1/1 = [1], read 1/2 = nothing\n";
    assert_eq!(verdict.to_string(), expected);
    let verdict = replay::judge(&load("bad-lost-update")).expect("timestamps");
    let expected = "T2 at timestamp 20 read 1/1 = nothing, as if it were absent; \
        at that timestamp it is [1] (T1, timestamp 10)";
    assert_eq!(verdict.violations[0].sentence, expected);
}

/// A transaction that does one thing; its outcome is unknown if it has no end.
fn one(id: u64, begin_ns: u64, end_ns: Option<u64>, op: Op) -> Transaction {
    Transaction {
        id,
        process: id as u32,
        begin_ns,
        end_ns,
        outcome: end_ns.map_or(Outcome::Unknown, |_| Outcome::Ok),
        timestamp: end_ns,
        ops: vec![op],
    }
}

#[test]
fn a_write_of_unknown_outcome_excuses_no_reader_that_ended_before_it_began() {
    let key = Key::new(2, 1);
    let write = |n: Option<i64>, by| Op::Write {
        key,
        value: n.map(|n| Value::Register { n, by }),
    };
    let read = Op::Read { key, value: None };
    let lookup = Op::Lookup(Lookup {
        table: 2,
        from: 0,
        to: 10,
        rows: Vec::new(),
    });
    for (reader, n) in [(read, None), (lookup, Some(50))] {
        let judged = |write_begins| {
            let transactions = vec![
                one(1, 1, Some(10), write(Some(5), 1)),
                one(2, 20, Some(30), reader.clone()),
                one(3, write_begins, None, write(n, 3)),
            ];
            replay::judge(&History { transactions }).expect("timestamps")
        };
        let verdict = judged(30);
        assert!(verdict.holds(), "{verdict}");
        let verdict = judged(1000);
        assert!(verdict.broken.contains_key(&Rule::StaleRead), "{verdict}");
    }
}

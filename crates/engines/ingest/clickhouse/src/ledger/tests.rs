#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::fake_server::{Reply, patience, start};

fn entry(archive: &str) -> Entry {
    Entry {
        generation: 0,
        archive: archive.to_owned(),
        state: State::Done,
        source: SourceIdentity {
            path: "a.csv".to_owned(),
            bytes: 1,
            hash: "0".repeat(32),
        },
        rows: 1,
        bad_rows: 0,
        table_bytes: 1,
        shares: Vec::new(),
        quarantine_stage: String::new(),
        loaded_at_s: 0,
        writer: "test".to_owned(),
    }
}

/// Generation and archive of the row that an INSERT adds.
fn row_of(insert: &str) -> (u64, String) {
    let (_, values) = insert.split_once("VALUES (").unwrap();
    let mut values = values.split(", ").skip(1);
    let generation = values.next().unwrap().parse().unwrap();
    (
        generation,
        values.next().unwrap().trim_matches('\'').to_owned(),
    )
}

/// The row of the first archive arrives and its answer is lost. The row of the second is refused at
/// first, and must be sent again although the ledger has one more row than before.
#[test]
fn a_row_whose_answer_was_lost_is_not_taken_for_the_next_one() {
    let rows: Arc<Mutex<Vec<(u64, String)>>> = Arc::default();
    let (there, inserts) = (Arc::clone(&rows), AtomicU32::new(0));
    let (_, client) = start(move |sql| {
        let mut rows = there.lock().unwrap();
        if let Some((_, generation)) = sql.split_once("WHERE generation = ") {
            let generation: u64 = generation.trim().parse().unwrap();
            let found = rows.iter().filter(|(of, _)| *of == generation).count();
            return Reply::Text(found.to_string());
        }
        match inserts.fetch_add(1, Ordering::Relaxed) {
            0 => {
                rows.push(row_of(sql));
                Reply::HangUp
            }
            1 => Reply::Code(202),
            _ => {
                rows.push(row_of(sql));
                Reply::Text(String::new())
            }
        }
    });
    let mut ledger = Ledger::empty("db.t_ledger");
    let none = patience(Duration::ZERO);
    ledger.append(&client, &none, entry("one")).unwrap_err();
    let some = patience(Duration::from_secs(30));
    ledger.append(&client, &some, entry("two")).unwrap();
    let rows = rows.lock().unwrap().clone();
    let archives: Vec<&str> = rows.iter().map(|(_, archive)| archive.as_str()).collect();
    assert_eq!(archives, ["one", "two"]);
}

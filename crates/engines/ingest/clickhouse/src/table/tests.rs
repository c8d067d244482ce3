#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use dyno_ingest::table::SourceIdentity;

use super::*;
use crate::fake_server::{Reply, patience, start};

fn begun(archive: &str, state: State) -> (String, Entry) {
    let share = Share {
        server: "none".to_owned(),
        partition: "202301".to_owned(),
        rows: 1,
        stage: format!("t_dyno_stage_{archive}_0"),
    };
    let entry = Entry {
        generation: 1,
        archive: archive.to_owned(),
        state,
        source: SourceIdentity {
            path: "a.csv".to_owned(),
            bytes: 1,
            hash: "0".repeat(32),
        },
        rows: 1,
        bad_rows: 1,
        table_bytes: 1,
        shares: vec![share],
        quarantine_stage: format!("t_dyno_stage_{archive}_bad"),
        loaded_at_s: 0,
        writer: "test".to_owned(),
    };
    (archive.to_owned(), entry)
}

/// The server failed in the middle of the swap of `half`, and other archives went on.
#[test]
fn the_end_of_a_load_keeps_the_stages_of_a_swap_that_is_not_complete() {
    let dropped: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&dropped);
    let (address, client) = start(move |sql| {
        let stages = ["half_0", "half_bad", "half_1", "done_0", "done_bad"];
        if let Some(table) = sql.strip_prefix("DROP TABLE IF EXISTS db.t_dyno_") {
            seen.lock().push(table.to_owned());
        }
        if sql.contains("FROM system.tables") {
            Reply::Text(
                stages
                    .map(|stage| format!("t_dyno_stage_{stage}\n"))
                    .concat(),
            )
        } else {
            Reply::Text(String::new())
        }
    });
    let patience = patience(Duration::ZERO);
    let lock = WriterLock::acquire(&client, &address, &patience).unwrap();
    let mut ledger = Ledger::empty("db.t_ledger");
    ledger.entries = [begun("half", State::Swap), begun("done", State::Done)].into();
    let table = ServerTable {
        clients: vec![client],
        address,
        local: "t".to_owned(),
        columns: Vec::new(),
        ledger: Mutex::new(ledger),
        patience,
        parts_limits: vec![1],
        senders: 1,
        writer: "test".to_owned(),
        lock: Mutex::new(lock),
    };
    let encoder = |_: &str| Spots::default();
    Opened { table, encoder }.finish().unwrap();
    let dropped = dropped.lock().clone();
    assert_eq!(
        dropped,
        ["stage_half_1", "stage_done_0", "stage_done_bad", "writer"]
    );
}

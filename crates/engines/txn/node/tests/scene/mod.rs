//! What the tests of this folder share. Each of them is a program of its own and uses a part of it.

#![allow(dead_code, reason = "each test uses a part")]

use std::time::Duration;

use dyno_txn_api::{Database, Result, Scan, Transact};
use dyno_txn_node::OpenOptions;

/// Options of an engine that leaves the processors to its clients: tests run side by side.
pub fn options() -> OpenOptions {
    OpenOptions {
        spin: Duration::from_micros(20),
        ..OpenOptions::default()
    }
}

/// The rows of a table, read in pages. An error only if there is no such table.
pub fn count(db: &dyn Database, table: &str) -> Result<u64> {
    let mut scan = Scan::all(db.table(table)?.id).limit(1000);
    let mut count = 0;
    loop {
        let page = db.transact(|t| t.scan(&scan)).expect("it reads");
        count += page.rows.len() as u64;
        match page.next {
            Some(next) => scan = scan.after(next),
            None => return Ok(count),
        }
    }
}

/// A value of eight bytes as a number; 0 for a row that is not there.
pub fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| {
        u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
    })
}

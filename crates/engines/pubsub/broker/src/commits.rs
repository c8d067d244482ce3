//! Commits of cursors. The cursors of all consumers that came since the last commit are stored in
//! one transaction.
//!
//! The session commits asynchronously. A crash of the server can lose the last cursors, which makes
//! consumers read some records again, but it loses no record. Claims, which bound what is read
//! again, are stored synchronously (`control`).

use std::time::Duration;
use std::{mem, thread};

use dyno_net::Charge;
use dyno_pubsub::wire::{Commit, Committed, Cursor};
use dyno_pubsub::{Connection, Error, Result};

use crate::batch::Ack;
use crate::counters::{Counters, add};
use crate::fair::Fair;
use crate::link::Link;

/// The settings of this thread's session.
pub const SETTINGS: &[(&str, &str)] = &[("synchronous_commit", "off")];
/// The most requests of one transaction.
const MOST: usize = 500;
/// How long the first request waits for others.
const TICK: Duration = Duration::from_millis(2);

/// A request, and where its answer goes.
pub struct Commits {
    pub ack: Ack,
    pub request: Commit,
    /// For the memory of a long request, until it is answered.
    pub _charge: Option<Charge>,
}

/// The most requests of one connection that wait. A further one holds its connection back.
pub const MOST_EACH: usize = 256;

/// Stores cursors until the list is stopped.
pub fn run(jobs: &Fair<Commits>, mut link: Link, counters: &Counters) {
    loop {
        let mut taken = jobs.pop(MOST);
        if taken.is_empty() {
            return;
        }
        thread::sleep(TICK);
        taken.append(&mut jobs.take_now(MOST - taken.len().min(MOST)));
        taken.retain(|commit| !commit.ack.outbox.is_closed());
        // All brokers store cursors in the same order. Otherwise the transactions of two brokers
        // might wait for each other.
        taken.sort_by_key(|commit| (commit.request.group_id, first(&commit.request.cursors)));
        add(&counters.cursor_commits, 1);
        let cursors = taken.iter().map(|commit| commit.request.cursors.len());
        add(&counters.cursors, cursors.sum());
        if let Ok(refused) = link.run(|connection| store_all(connection, &taken)) {
            for (commit, refused) in taken.iter().zip(refused) {
                commit.ack.answer(&Committed { refused });
            }
            continue;
        }
        // One of the requests is wrong, or the server was away. Each is stored by itself. Storing a
        // cursor twice is harmless.
        for commit in mem::take(&mut taken) {
            match link.run(|connection| store(connection, &commit.request)) {
                Ok(refused) => commit.ack.answer(&Committed { refused }),
                Err(error) => commit.ack.refused(&error),
            }
        }
    }
}

fn first(cursors: &[Cursor]) -> i32 {
    cursors
        .iter()
        .map(|cursor| cursor.partition)
        .min()
        .unwrap_or(0)
}

fn store_all(connection: &mut Connection, commits: &[Commits]) -> Result<Vec<Vec<i32>>> {
    let failed = || Error::statement("store cursors");
    connection
        .client()
        .batch_execute("BEGIN")
        .map_err(failed())?;
    let stored: Result<Vec<Vec<i32>>> = commits
        .iter()
        .map(|commit| store(connection, &commit.request))
        .collect();
    let end = if stored.is_ok() { "COMMIT" } else { "ROLLBACK" };
    connection.client().batch_execute(end).map_err(failed())?;
    stored
}

/// Stores the cursors of one request, and returns the partitions whose cursors were refused.
pub fn store(connection: &mut Connection, ask: &Commit) -> Result<Vec<i32>> {
    let set = |value: i64| (value != -1).then_some(value);
    let cursors: Vec<dyno_pubsub::Cursor> = ask
        .cursors
        .iter()
        .map(|cursor| dyno_pubsub::Cursor {
            partition: cursor.partition,
            generation: cursor.generation,
            committed: set(cursor.committed),
            claimed_to: set(cursor.claimed_to),
        })
        .collect();
    connection.group_commit(ask.group_id, &ask.member, &cursors)
}

//! Lists the standbys of a primary and how far they are.

use std::time::{Duration, Instant};

use postgres::Client;

use super::failed;
use super::synchronous::POLL;
use crate::error::PgError;

/// A standby as its primary sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    /// The name that the standby was made with.
    pub name: String,
    /// `startup`, `catchup`, `streaming`, `backup` or `stopping`.
    pub state: String,
    /// `async`, `potential`, `sync` or `quorum`.
    pub sync_state: String,
    /// Bytes of log that it has not flushed yet.
    pub behind_bytes: i64,
}

/// The standbys that are connected to the primary of `client`.
///
/// # Errors
/// When the primary does not answer.
pub fn followers(client: &mut Client) -> Result<Vec<Follower>, PgError> {
    let ask = "SELECT application_name, coalesce(state, ''), coalesce(sync_state, ''), \
               coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn), 0)::bigint \
               FROM pg_stat_replication ORDER BY 1";
    let rows = client
        .query(ask, &[])
        .map_err(PgError::statement("ask for the standbys"))?;
    Ok(rows
        .iter()
        .map(|row| Follower {
            name: row.get(0),
            state: row.get(1),
            sync_state: row.get(2),
            behind_bytes: row.get(3),
        })
        .collect())
}

/// Waits until the standby `name` has caught up and is streaming from the primary of `client`.
///
/// # Errors
/// [`PgError::Standby`] when it is not after `timeout`.
pub fn wait_streaming(client: &mut Client, name: &str, timeout: Duration) -> Result<(), PgError> {
    let deadline = Instant::now() + timeout;
    loop {
        let all = followers(client)?;
        let found = all.iter().find(|follower| follower.name == name);
        if found.is_some_and(|follower| follower.state == "streaming") {
            return Ok(());
        }
        if Instant::now() > deadline {
            let state = found.map_or("not connected", |follower| &follower.state);
            return Err(failed(name, format!("it is {state:?} after {timeout:?}")));
        }
        std::thread::sleep(POLL);
    }
}

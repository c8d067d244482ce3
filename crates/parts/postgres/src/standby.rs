//! Streaming replication between private clusters: making a standby, waiting for it, which standbys
//! a commit waits for, and takeover (PostgreSQL documentation, chapter "High Availability").
//!
//! A takeover in order: kill or stop the old primary; [`furthest`] of the standbys, because with
//! `ANY 1` only one of them may have the last commits; [promote](crate::Cluster::promote) it;
//! [depose](crate::Cluster::depose) the old primary, which from then on refuses to start; have the
//! other standbys [follow](crate::Cluster::follow); [rebuild](crate::Cluster::rebuild) the old one
//! as a standby.

mod making;
mod replication;
mod synchronous;
mod takeover;

pub use replication::{Follower, followers, wait_streaming};
pub use synchronous::Synchronous;
pub use takeover::furthest;

use crate::error::PgError;

/// The most characters of a standby's name.
const NAME_CHARS: usize = 40;

/// The name of the primary's replication slot for a standby.
pub(crate) fn slot_of(name: &str) -> String {
    format!("dyno_{name}")
}

/// Checks that a name is plain, because it is a part of slot names and settings.
fn check_name(name: &str) -> Result<(), PgError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.is_empty() && name.len() <= NAME_CHARS && name.chars().all(plain) {
        return Ok(());
    }
    Err(PgError::Standby {
        name: name.to_owned(),
        reason: format!("a name has 1 to {NAME_CHARS} of a-z, 0-9 and _"),
    })
}

fn failed(name: &str, reason: impl Into<String>) -> PgError {
    PgError::Standby {
        name: name.to_owned(),
        reason: reason.into(),
    }
}

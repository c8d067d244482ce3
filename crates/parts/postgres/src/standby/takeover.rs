//! Promotes a standby in place of its primary.

use std::time::Duration;

use super::{Synchronous, failed, slot_of};
use crate::cluster::{Cluster, Role};
use crate::connect::{Session, connect};
use crate::dsn::Dsn;
use crate::error::PgError;
use crate::standby::making::make_slot;

/// How long the server may take to leave recovery.
const PROMOTE_TIMEOUT: Duration = Duration::from_secs(60);

/// The index of the standby with the most log, which must be the one to promote, because its log
/// includes what any of them acknowledged. `None` if `standbys` is empty.
///
/// # Errors
/// When one of them does not answer: it might be the one.
pub fn furthest(standbys: &[&Cluster]) -> Result<Option<usize>, PgError> {
    let mut best: Option<(u64, usize)> = None;
    for (at, standby) in standbys.iter().enumerate() {
        let position = standby.log_position()?;
        // An error above ends the search. Leaving out a standby that does not answer could promote
        // one that lacks acknowledged commits.
        if best.is_none_or(|(most, _)| position > most) {
            best = Some((position, at));
        }
    }
    Ok(best.map(|(_, at)| at))
}

impl Cluster {
    /// Whether it follows a primary.
    pub fn is_standby(&self) -> bool {
        matches!(self.identity.role, Role::Standby { .. })
    }

    /// Where its log ends, in bytes: what a standby has on stable storage, or a primary has
    /// written.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn log_position(&self) -> Result<u64, PgError> {
        // After a restart nothing may have been received yet, but what was replayed had been
        // received.
        let ask = "SELECT (CASE WHEN pg_is_in_recovery() \
                   THEN greatest(coalesce(pg_last_wal_receive_lsn(), '0/0'), coalesce(pg_last_wal_replay_lsn(), '0/0')) \
                   ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::bigint";
        let mut client = connect(&self.dsn(), &Session::named("dyno standby"))?;
        let row = client
            .query_one(ask, &[])
            .map_err(PgError::statement("ask for the end of the log"))?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or(0))
    }

    /// Makes this standby a primary that waits for no standby (see [`Cluster::set_synchronous`]).
    /// The old primary must be dead or deposed: two primaries would each take records that the
    /// other lacks. The password for TCP becomes that of [`Cluster::tcp_dsn`], whatever the old
    /// primary had.
    ///
    /// # Errors
    /// When it is not a standby, or does not leave recovery in a minute.
    pub fn promote(&mut self) -> Result<(), PgError> {
        if !self.is_standby() {
            return Err(failed(
                &self.home.dir.display().to_string(),
                "it is not a standby",
            ));
        }
        self.identity.role = Role::Primary;
        self.identity.synchronous = Synchronous::Off;
        // The identity comes first: if a crash comes between the two, opening the cluster finishes
        // the promotion.
        self.identity.store(&self.home)?;
        self.leave_recovery()?;
        self.reload()
    }

    /// Promotes the server if it is in recovery, and gives it the password of this cluster: the
    /// copy has that of its old primary, or none.
    pub(crate) fn leave_recovery(&self) -> Result<(), PgError> {
        let mut client = connect(&self.dsn(), &Session::named("dyno standby"))?;
        let seconds = i32::try_from(PROMOTE_TIMEOUT.as_secs()).unwrap_or(i32::MAX);
        let ask = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_promote(true, $1) ELSE true END";
        let row = client
            .query_one(ask, &[&seconds])
            .map_err(PgError::statement("promote the standby"))?;
        if row.get::<_, bool>(0) {
            return self.renew_password();
        }
        let reason = format!("it is in recovery {PROMOTE_TIMEOUT:?} after it was promoted");
        Err(failed(&self.home.dir.display().to_string(), reason))
    }

    /// Makes this standby follow another primary, such as one that was just promoted.
    ///
    /// # Errors
    /// When it is not a standby, or the primary does not answer.
    pub fn follow(&mut self, new_primary: &Dsn) -> Result<(), PgError> {
        let Role::Standby { name, primary } = &mut self.identity.role else {
            return Err(failed(
                &self.home.dir.display().to_string(),
                "it is not a standby",
            ));
        };
        make_slot(new_primary, name)?;
        *primary = new_primary.conninfo(None);
        self.identity.store(&self.home)?;
        self.reload()
    }

    /// Stops this former primary and records which one replaced it, so that it never starts as a
    /// primary again.
    ///
    /// # Errors
    /// When it does not stop, or the note cannot be written.
    pub fn depose(mut self, by: &Dsn) -> Result<(), PgError> {
        self.identity.role = Role::Deposed { by: by.to_string() };
        // The identity comes first, because after a crash between the two it must not start as a
        // primary.
        self.identity.store(&self.home)?;
        self.kill_all()
    }

    /// Drops the slot of a standby that will not return, so that the primary stops keeping log for
    /// it.
    ///
    /// # Errors
    /// When the standby is connected, or has no slot.
    pub fn forget_standby(&self, name: &str) -> Result<(), PgError> {
        let mut client = connect(&self.dsn(), &Session::named("dyno standby"))?;
        client
            .execute("SELECT pg_drop_replication_slot($1)", &[&slot_of(name)])
            .map_err(PgError::statement("drop the standby's slot"))?;
        Ok(())
    }
}

//! Copies a primary into a standby.

use std::fs;
use std::path::{Path, PathBuf};

use super::{check_name, failed, slot_of};
use crate::cluster::{Cluster, Options, Role};
use crate::connect::{Session, connect};
use crate::dsn::Dsn;
use crate::error::PgError;
use crate::os::replace_file;

impl Cluster {
    /// Opens the standby `name` of the primary at `primary` in `dir`, copying the primary at the
    /// first time. It returns when the standby answers, which may be before it has caught up (see
    /// [`super::wait_streaming`]).
    ///
    /// # Errors
    /// As [`Cluster::open`]; and when `dir` holds a primary, or the standby of another name.
    pub fn open_standby(
        dir: &Path,
        options: Options,
        primary: &Dsn,
        name: &str,
    ) -> Result<Self, PgError> {
        check_name(name)?;
        let mut cluster = Self::claim(dir, options)?;
        if !cluster.home.data().exists() {
            return cluster.copied(primary, name);
        }
        // The identity is written before the copy replaces the data. So as long as the file that
        // PostgreSQL itself needs is missing, the data is still the old one.
        let copied = cluster.home.data().join("standby.signal").exists();
        if cluster.is_standby() && !copied {
            return cluster.copied(primary, name);
        }
        match &mut cluster.identity.role {
            Role::Standby {
                name: known,
                primary: from,
            } if known == name => {
                let way = primary.conninfo(None);
                if *from != way {
                    make_slot(primary, name)?;
                    *from = way;
                }
            }
            Role::Standby { name: known, .. } => {
                return Err(failed(
                    name,
                    format!("{} holds standby {known:?}", dir.display()),
                ));
            }
            Role::Primary => {
                return Err(failed(name, format!("{} holds a primary", dir.display())));
            }
            Role::Deposed { by } => {
                return Err(PgError::Deposed {
                    dir: dir.to_path_buf(),
                    by: by.clone(),
                });
            }
        }
        cluster.identity.store(&cluster.home)?;
        cluster.bring_up()?;
        Ok(cluster)
    }

    /// Makes `dir`, whatever cluster is in it, the standby `name` of `primary`. Its own data is
    /// dropped when the copy is complete.
    ///
    /// # Errors
    /// As [`Cluster::open_standby`].
    pub fn rebuild(
        dir: &Path,
        options: Options,
        primary: &Dsn,
        name: &str,
    ) -> Result<Self, PgError> {
        check_name(name)?;
        let mut cluster = Self::claim(dir, options)?;
        cluster.stop()?;
        cluster.copied(primary, name)
    }

    /// Copies the primary and starts the copy as its standby.
    fn copied(mut self, primary: &Dsn, name: &str) -> Result<Self, PgError> {
        make_slot(primary, name)?;
        let staged = self.prepare_staged()?;
        self.copy(primary, name, &staged)?;
        // ALTER SYSTEM settings of the primary, such as the standbys that a commit waits for, must
        // not apply here.
        let head = "# ALTER SYSTEM writes here.\n";
        replace_file(
            &staged.join("postgresql.auto.conf"),
            head,
            Some(&self.owner),
        )?;
        replace_file(&staged.join("standby.signal"), "", Some(&self.owner))?;
        self.identity.role = Role::Standby {
            name: name.to_owned(),
            primary: primary.conninfo(None),
        };
        self.identity.synchronous = super::Synchronous::Off;
        // The identity comes before the data, because a standby's data that is taken for a
        // primary's would fork the log.
        self.identity.store(&self.home)?;
        self.install_staged()?;
        self.bring_up()?;
        Ok(self)
    }

    fn copy(&self, primary: &Dsn, name: &str, staged: &Path) -> Result<(), PgError> {
        // Every user can read a password on a command line, so the connection is in a file that
        // only the server's user can open.
        let service = ServiceFile::write(self, primary, name)?;
        let program = self.installation.program("pg_basebackup");
        let mut command = self.owner.command(&program, &self.home.dir);
        command
            .env("PGSERVICEFILE", &service.path)
            .args(["--dbname", "service=primary", "--checkpoint", "fast"])
            .args(["--wal-method", "stream", "--no-password"])
            .args(["--slot", &slot_of(name), "--pgdata"])
            .arg(staged);
        crate::cluster::run(command)
    }
}

/// A file with the connection to the primary, removed after its use.
struct ServiceFile {
    path: PathBuf,
}

impl ServiceFile {
    fn write(cluster: &Cluster, primary: &Dsn, name: &str) -> Result<Self, PgError> {
        let path = cluster.home.dir.join("run/primary.service");
        let mut text = String::from("[primary]\n");
        for (key, value) in primary.words(Some(name)) {
            if value.contains('\n') {
                return Err(failed(
                    name,
                    format!("{key} of the primary holds a line end"),
                ));
            }
            text.push_str(&format!("{key}={value}\n"));
        }
        replace_file(&path, &text, Some(&cluster.owner))?;
        Ok(Self { path })
    }
}

impl Drop for ServiceFile {
    fn drop(&mut self) {
        // The file and its directory are closed to others, and a file that stays is overwritten
        // next time.
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates the slot that makes the primary keep the log for the standby. An idle one that exists is
/// used.
pub(super) fn make_slot(primary: &Dsn, name: &str) -> Result<(), PgError> {
    let mut client = connect(primary, &Session::named("dyno standby"))?;
    let slot = slot_of(name);
    let ask = "SELECT active, wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = $1";
    let found = client
        .query_opt(ask, &[&slot])
        .map_err(PgError::statement("look for the standby's slot"))?;
    if let Some(row) = found {
        if row.get(0) {
            return Err(failed(
                name,
                "a standby of this name is connected to the primary",
            ));
        }
        // A slot whose log was removed cannot feed a standby any more, so it is replaced.
        if row.get::<_, Option<bool>>(1) != Some(true) {
            return Ok(());
        }
        client
            .execute("SELECT pg_drop_replication_slot($1)", &[&slot])
            .map_err(PgError::statement("drop the slot that lost its log"))?;
    }
    client
        .execute(
            "SELECT pg_create_physical_replication_slot($1, true)",
            &[&slot],
        )
        .map_err(PgError::statement("make the standby's slot"))?;
    Ok(())
}

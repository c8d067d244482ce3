//! Creates a cluster's data: initdb runs in a directory beside the final one, and a rename makes
//! the result count.

use std::fs;
use std::process::{Command, Stdio};

use super::wal_ahead::make_ahead;
use super::{Cluster, SUPERUSER};
use crate::advice;
use crate::connect::{Session, connect};
use crate::error::PgError;
use crate::os::sync_dir;

impl Cluster {
    /// Creates the data unless it exists.
    pub(super) fn make_data(&mut self) -> Result<(), PgError> {
        let data = self.home.data();
        if data.join("PG_VERSION").is_file() {
            return self.check_major();
        }
        if data.exists() {
            return Err(PgError::Damaged {
                path: data,
                reason: "it has no PG_VERSION".to_owned(),
            });
        }
        let staged = self.prepare_staged()?;
        let mut initdb = self
            .owner
            .command(&self.installation.program("initdb"), &self.home.dir);
        initdb
            .args([
                "--username",
                SUPERUSER,
                "--encoding",
                "UTF8",
                "--locale",
                "C",
            ])
            // initdb need not set access rules, because we write ours before the server starts.
            .args(["--auth", "trust", "--data-checksums", "--pgdata"])
            .arg(&staged);
        if self.options.short_lived {
            initdb.arg("--no-sync");
        }
        run(initdb)?;
        if self.options.wal_ahead {
            let bytes = advice::ahead_bytes(&self.size());
            make_ahead(&staged.join("pg_wal"), bytes, &self.owner)?;
        }
        self.install_staged()
    }

    /// Makes an empty directory for data that is being made. What a killed attempt left there is
    /// removed.
    pub(crate) fn prepare_staged(&self) -> Result<std::path::PathBuf, PgError> {
        let staged = self.home.staged();
        if staged.exists() {
            fs::remove_dir_all(&staged).map_err(PgError::io("remove", &staged))?;
        }
        crate::os::make_dir(&staged, 0o700)?;
        self.owner.give(&staged)?;
        Ok(staged)
    }

    /// Moves finished data to its final name, replacing data that was there.
    pub(crate) fn install_staged(&self) -> Result<(), PgError> {
        let (staged, data, replaced) = (self.home.staged(), self.home.data(), self.home.replaced());
        if replaced.exists() {
            fs::remove_dir_all(&replaced).map_err(PgError::io("remove", &replaced))?;
        }
        if data.exists() {
            fs::rename(&data, &replaced).map_err(PgError::io("set aside", &data))?;
        }
        // After a crash between the two renames there is no data. Only a rebuild replaces data, and
        // by then the identity names a standby, whose data is refused until its copy is complete.
        fs::rename(&staged, &data).map_err(PgError::io("rename", &staged))?;
        sync_dir(&self.home.dir)?;
        if replaced.exists() {
            fs::remove_dir_all(&replaced).map_err(PgError::io("remove", &replaced))?;
        }
        Ok(())
    }

    fn check_major(&self) -> Result<(), PgError> {
        let path = self.home.data().join("PG_VERSION");
        let text = fs::read_to_string(&path).map_err(PgError::io("read", &path))?;
        let major = text.trim().parse().map_err(|_| PgError::Damaged {
            path: path.clone(),
            reason: format!("it holds {:?}, not a version", text.trim()),
        })?;
        if major == self.installation.version().major {
            return Ok(());
        }
        Err(PgError::Major {
            dir: self.home.dir.clone(),
            data: major,
            found: self.installation.to_string(),
        })
    }

    /// Sets the password for TCP, unless the superuser has one.
    pub(super) fn set_password(&self) -> Result<(), PgError> {
        let mut client = connect(&self.dsn(), &Session::named("dyno cluster"))?;
        let ask = "SELECT rolpassword IS NULL FROM pg_authid WHERE rolname = $1";
        let row = client
            .query_one(ask, &[&SUPERUSER])
            .map_err(PgError::statement("look for the password"))?;
        // It is set once. A later start must not replace a password that the user has changed.
        if row.get(0) {
            self.renew_password()?;
        }
        Ok(())
    }

    /// Gives the superuser the password that this cluster is reached with over TCP. The commit does
    /// not wait for a standby, because it must work without one.
    pub(crate) fn renew_password(&self) -> Result<(), PgError> {
        let mut session = Session::named("dyno cluster");
        session.set("synchronous_commit", "local");
        let mut client = connect(&self.dsn(), &session)?;
        let password = &self.identity.password;
        // The password consists of hexadecimal digits, so it needs no quoting.
        client
            .batch_execute(&format!("ALTER ROLE {SUPERUSER} PASSWORD '{password}'"))
            .map_err(PgError::statement("set the password"))
    }
}

/// Runs one of PostgreSQL's programs to its end; its output becomes the error if it fails.
pub(crate) fn run(mut command: Command) -> Result<(), PgError> {
    let program = std::path::PathBuf::from(command.get_program());
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(PgError::io("run", &program))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut lines: Vec<&str> = stderr.lines().filter(|line| !line.is_empty()).collect();
    lines.drain(..lines.len().saturating_sub(8));
    Err(PgError::Program {
        program,
        status: output.status.to_string(),
        output: lines.join("; "),
    })
}

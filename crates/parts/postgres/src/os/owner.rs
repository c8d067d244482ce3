//! The user that a server runs as. PostgreSQL refuses to run as root, so root starts it as another
//! user.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, chown, fchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::error::PgError;

/// The user that runs the server if root names none.
const DEFAULT_USER: &str = "postgres";

/// The caller's variables that its servers inherit, because programs and libraries are found by
/// them.
const KEPT: [&str; 2] = ["PATH", "LD_LIBRARY_PATH"];

/// A user of this machine, and whether programs must be started with a change to it.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub name: String,
    pub uid: u32,
    gid: u32,
    changes: bool,
}

impl Owner {
    /// The calling user; for root the user named `wanted`, or else `postgres`.
    pub fn resolve(wanted: Option<&str>) -> Result<Self, PgError> {
        let me =
            fs::metadata("/proc/self").map_err(PgError::io("read", Path::new("/proc/self")))?;
        if me.uid() == 0 {
            return Self::lent(wanted.unwrap_or(DEFAULT_USER));
        }
        let name = id(&["-un"]).unwrap_or_else(|_| me.uid().to_string());
        if let Some(wanted) = wanted
            && wanted != name
        {
            return Err(PgError::User {
                name: wanted.to_owned(),
                reason: format!("only root can run it as another user, and this is {name}"),
            });
        }
        Ok(Self {
            name,
            uid: me.uid(),
            gid: me.gid(),
            changes: false,
        })
    }

    fn lent(name: &str) -> Result<Self, PgError> {
        let user = |reason: String| PgError::User {
            name: name.to_owned(),
            reason,
        };
        let number = |flag| {
            let text = id(&[flag, "--", name]).map_err(|e| {
                user(format!(
                    "{e}; name another with --pg-user, or do not run as root"
                ))
            })?;
            let bad = |_| user(format!("'id {flag}' said {text:?}"));
            text.parse::<u32>().map_err(bad)
        };
        let (uid, gid) = (number("-u")?, number("-g")?);
        if uid == 0 {
            return Err(user(
                "PostgreSQL refuses to run as root; name another with --pg-user".to_owned(),
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            uid,
            gid,
            changes: true,
        })
    }

    /// A command that runs as this user, in `dir`, with an environment of its own. The caller's may
    /// hold secrets such as a token, which the other user and each superuser of the server could
    /// read. PostgreSQL also reads settings from it.
    pub fn command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear();
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("LC_ALL", "C").env("TZ", "UTC").current_dir(dir);
        if self.changes {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Gives a directory to this user.
    pub fn give(&self, path: &Path) -> Result<(), PgError> {
        if !self.changes {
            return Ok(());
        }
        chown(path, Some(self.uid), Some(self.gid))
            .map_err(PgError::io("change the owner of", path))
    }

    /// Gives an open file, at `path`, to this user.
    pub fn give_file(&self, file: &File, path: &Path) -> Result<(), PgError> {
        if !self.changes {
            return Ok(());
        }
        fchown(file, Some(self.uid), Some(self.gid))
            .map_err(PgError::io("change the owner of", path))
    }

    /// Checks that this user can enter `dir`; the error names the first directory that is closed.
    pub fn reach(&self, dir: &Path) -> Result<(), PgError> {
        if !self.changes || self.enters(dir) {
            return Ok(());
        }
        let mut parents: Vec<&Path> = dir.ancestors().collect();
        parents.reverse();
        let closed = parents
            .iter()
            .find(|path| !self.enters(path))
            .unwrap_or(&dir);
        Err(PgError::Unreachable {
            user: self.name.clone(),
            path: closed.to_path_buf(),
        })
    }

    /// Asks the kernel as that user, so that access lists and groups count too.
    fn enters(&self, dir: &Path) -> bool {
        let mut command = self.command(Path::new("/bin/sh"), Path::new("/"));
        command.args(["-c", "test -x \"$1\"", "sh"]).arg(dir);
        command.status().is_ok_and(|status| status.success())
    }
}

fn id(args: &[&str]) -> io::Result<String> {
    let output = Command::new("id").args(args).env("LC_ALL", "C").output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

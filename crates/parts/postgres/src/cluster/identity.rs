//! `dyno-cluster.json`: the identity of a cluster. It is written before the data that it describes,
//! so data without it belongs to another cluster.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::home::{Home, random_u64};
use crate::error::PgError;
use crate::os::replace_file;
use crate::standby::Synchronous;

const MAGIC: &str = "dyno-cluster";
const VERSION: u32 = 1;
/// The port is also part of the socket's name. The socket's directory is private, so any port will
/// do.
pub(crate) const PORT: u16 = 5432;

/// What is stored about a cluster between two starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Identity {
    magic: String,
    version: u32,
    /// PostgreSQL's major version, which the data needs to be read.
    pub major: u32,
    /// Absolute path of the directory with the socket.
    pub socket_dir: PathBuf,
    /// Port of the socket's name, and of TCP if it is enabled.
    pub port: u16,
    /// The password for TCP; the socket needs none.
    pub password: String,
    pub role: Role,
    /// Standbys that a commit waits for.
    pub synchronous: Synchronous,
}

/// The cluster's role in replication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    Primary,
    /// Replicates from a primary and never accepts writes.
    Standby {
        /// The standby's name in the primary's `application_name` and slot.
        name: String,
        /// Connection string of the primary, password included.
        primary: String,
    },
    /// Was replaced as the primary, and must not start as one.
    Deposed {
        by: String,
    },
}

impl Identity {
    /// Makes a new identity with a random password.
    pub fn new(major: u32, socket_dir: PathBuf) -> Result<Self, PgError> {
        let password = format!("{:016x}{:016x}", random_u64()?, random_u64()?);
        Ok(Self {
            magic: MAGIC.to_owned(),
            version: VERSION,
            major,
            socket_dir,
            port: PORT,
            password,
            role: Role::Primary,
            synchronous: Synchronous::Off,
        })
    }

    /// Reads the identity of a cluster. Returns `None` if the directory holds no cluster.
    pub fn load(home: &Home) -> Result<Option<Self>, PgError> {
        let path = home.identity();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(PgError::io("read", &path)(error)),
        };
        let damaged = |reason: String| PgError::Damaged {
            path: path.clone(),
            reason,
        };
        // Magic and version are read first, because a later version may have other fields.
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
        if value.get("magic").and_then(|m| m.as_str()) != Some(MAGIC) {
            return Err(damaged(format!("its magic is not {MAGIC:?}")));
        }
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        let version = version.and_then(|v| u32::try_from(v).ok());
        let version = version.ok_or_else(|| damaged("it has no version".to_owned()))?;
        if version > VERSION {
            return Err(PgError::Newer {
                path,
                version,
                known: VERSION,
            });
        }
        serde_json::from_value(value)
            .map(Some)
            .map_err(|e| damaged(e.to_string()))
    }

    /// Replaces the file atomically and durably.
    pub fn store(&self, home: &Home) -> Result<(), PgError> {
        let path = home.identity();
        let text = serde_json::to_string_pretty(self).map_err(|e| PgError::Damaged {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        replace_file(&path, &format!("{text}\n"), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_still_reads() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::prepare(dir.path()).unwrap();
        let fixture = include_str!("../../tests/fixtures/dyno-cluster-1.json");
        fs::write(home.identity(), fixture).unwrap();
        let identity = Identity::load(&home).unwrap().unwrap();
        assert_eq!((identity.major, identity.port), (15, 5432));
        assert_eq!(identity.synchronous, Synchronous::any(1, &["b", "c"]));
        assert!(matches!(identity.role, Role::Standby { name, .. } if name == "a"));
    }

    #[test]
    fn what_is_not_ours_or_newer_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::prepare(dir.path()).unwrap();
        assert_eq!(Identity::load(&home).unwrap(), None);
        let identity = Identity::new(15, dir.path().join("run")).unwrap();
        identity.store(&home).unwrap();
        assert_eq!(Identity::load(&home).unwrap().as_ref(), Some(&identity));
        let text = fs::read_to_string(home.identity()).unwrap();
        for (from, to, says) in [
            ("\"version\": 1", "\"version\": 2", "has version 2"),
            ("dyno-cluster", "other", "its magic is not"),
            ("\"major\": 15,", "", "missing field `major`"),
            ("{", "", "is damaged"),
        ] {
            fs::write(home.identity(), text.replacen(from, to, 1)).unwrap();
            let error = Identity::load(&home).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}

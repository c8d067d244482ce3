//! Where a store that is served or attached is found again: a folder of its name, with its sockets in it.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, ensure};

/// The folder of one store.
pub struct Place {
    dir: PathBuf,
}

impl Place {
    /// Of `name`: below the run-time folder of the user, or of the system for root.
    pub fn of(name: &str) -> anyhow::Result<Place> {
        let plain = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        ensure!(
            plain && !name.is_empty() && name.len() <= 40,
            "--name {name}: 1 to 40 letters, digits, - and _ can be"
        );
        let base =
            env::var_os("XDG_RUNTIME_DIR").map_or_else(|| PathBuf::from("/run"), PathBuf::from);
        Ok(Place {
            dir: base.join("dyno-pages").join(name),
        })
    }

    /// Makes it, for its owner alone.
    pub fn make(&self) -> anyhow::Result<()> {
        let failed = || format!("cannot make {}", self.dir.display());
        fs::create_dir_all(&self.dir).with_context(failed)?;
        fs::set_permissions(&self.dir, Permissions::from_mode(0o700)).with_context(failed)
    }

    /// Removes it with what is in it.
    pub fn remove(&self) -> anyhow::Result<()> {
        fs::remove_dir_all(&self.dir)
            .with_context(|| format!("cannot remove {}", self.dir.display()))
    }

    /// Where the process answers that has the store.
    pub fn control(&self) -> PathBuf {
        self.dir.join("control")
    }

    /// Where the process answers that holds its memory.
    pub fn hold(&self) -> PathBuf {
        self.dir.join("hold")
    }

    /// Where the file system of one file is mounted.
    pub fn mount(&self) -> PathBuf {
        self.dir.join("mount")
    }

    /// The text that names its block device.
    pub fn device(&self) -> PathBuf {
        self.dir.join("device")
    }

    /// What its process says.
    pub fn log(&self) -> PathBuf {
        self.dir.join("log")
    }
}

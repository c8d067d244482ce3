//! A small file system for the server, and a file that fills it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, id};

static BLOCK: [u8; 64 << 10] = [0x5a; 64 << 10];
/// The source of our mounts, which is followed by the number of the process that owns the mount.
const SOURCE: &str = "dyno-check-";

/// The reason why there is no small file system, or no ballast in it.
#[derive(Debug, thiserror::Error)]
pub enum BallastError {
    /// `mount` or `umount` failed. Mounting needs root.
    #[error("cannot {action} a tmpfs at {path}: {reason}")]
    Mount {
        /// What was tried, as a verb.
        action: &'static str,
        /// The directory of the mount.
        path: PathBuf,
        /// The standard error of the program.
        reason: String,
    },
    /// The file system failed for another reason than that it is full.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// Why the system refused it.
        source: io::Error,
    },
}

/// A tmpfs of our own, unmounted when it is dropped.
#[derive(Debug)]
pub struct Tmpfs {
    path: PathBuf,
}

impl Tmpfs {
    /// Mounts a tmpfs of `bytes` at the directory `path`. Mounts of checks that were killed are
    /// removed first.
    pub fn mount(path: &Path, bytes: u64) -> Result<Self, BallastError> {
        sweep();
        fs::create_dir_all(path).map_err(|source| BallastError::Io {
            action: "create",
            path: path.to_path_buf(),
            source,
        })?;
        let size = format!("size={bytes},mode=0755");
        let source = format!("{SOURCE}{}", id());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, &source]).arg(path);
        run(&mut mount, "mount", path)?;
        Ok(Self {
            path: path.to_path_buf(),
        })
    }

    /// The directory at which it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.path) {
            eprintln!("{error}");
        }
    }
}

/// A file that takes all the room that is left, until it is dropped.
#[derive(Debug)]
pub struct Ballast {
    path: PathBuf,
}

impl Ballast {
    /// Fills the file system of the directory `dir`.
    pub fn fill(dir: &Path) -> Result<Self, BallastError> {
        let path = dir.join("ballast");
        let failed = |action, source| BallastError::Io {
            action,
            path: path.clone(),
            source,
        };
        let mut file = File::create(&path).map_err(|e| failed("create", e))?;
        // From here on the file is removed on every way out, also when filling fails half-way.
        let ballast = Self { path: path.clone() };
        loop {
            match file.write_all(&BLOCK) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(ballast),
                Err(error) => return Err(failed("write", error)),
            }
        }
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            eprintln!("cannot remove {}: {error}", self.path.display());
        }
    }
}

/// Unmounts what dead checks have left. The number of their process is in the source of the mount.
fn sweep() {
    let Ok(mounts) = fs::read_to_string("/proc/self/mounts") else {
        return;
    };
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(source), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let dead = source
            .strip_prefix(SOURCE)
            .is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        if dead {
            // A mount that cannot be removed does no harm to this run.
            let _ = unmount(Path::new(path));
        }
    }
}

fn unmount(path: &Path) -> Result<(), BallastError> {
    // The unmount is lazy, because a server that is being killed may hold the mount for a moment
    // longer.
    run(Command::new("umount").arg("-l").arg(path), "unmount", path)
}

fn run(command: &mut Command, action: &'static str, path: &Path) -> Result<(), BallastError> {
    let failed = |reason| BallastError::Mount {
        action,
        path: path.to_path_buf(),
        reason,
    };
    let output = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(message))
}

//! A small file system for the server, and a file that fills it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, id};

static BLOCK: [u8; 64 << 10] = [0x5a; 64 << 10];
/// What the source of our mounts is called, before the number of the process that owns it.
const SOURCE: &str = "dyno-check-";

/// Why there is no small file system, or no ballast in it.
#[derive(Debug, thiserror::Error)]
pub enum BallastError {
    /// `mount` or `umount` said no; mounting needs root.
    #[error("cannot {action} a tmpfs at {path}: {reason}")]
    Mount {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the program said.
        reason: String,
    },
    /// The file system said no, and not because it is full.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A tmpfs of our own, unmounted when it is dropped.
#[derive(Debug)]
pub struct Tmpfs {
    path: PathBuf,
}

impl Tmpfs {
    /// Mounts `bytes` at the directory `path`, and first unmounts what checks left behind that were
    /// killed.
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

    /// Where it is.
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

/// Unmounts what dead checks have left: their mounts bear their process numbers.
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
            // A mount that cannot be taken away does no harm to this run.
            let _ = unmount(Path::new(path));
        }
    }
}

fn unmount(path: &Path) -> Result<(), BallastError> {
    // Lazily: a server that is being killed may hold it for a moment longer.
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
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(said))
}

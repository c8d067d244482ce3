//! The directory of a cluster: which files are where, and which user may enter.
//!
//! ```text
//! DIR/lock                 held by the process that owns the cluster
//! DIR/dyno-cluster.json    what the cluster is (identity.rs)
//! DIR/data/                PostgreSQL's own; dyno.conf in it is ours
//! DIR/run/                 the Unix socket, for the server's user and us alone
//! DIR/log/server.log       what the server says
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::PgError;
use crate::os::{Owner, first_other_entry, make_dir};

/// Longest path of a Unix socket in bytes, without its final zero (unix(7)).
const SOCKET_PATH_BYTES: usize = 107;
/// A longer log is renamed when the server starts, and the one renamed before is deleted.
const LOG_BYTES: u64 = 8 << 20;
/// How often a lock that is held is tried again before it counts as another owner's, and the pause
/// between two attempts.
const LOCK_LOOKS: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Names that may be in the directory before there is a cluster.
const OURS: [&str; 2] = ["lock", "dyno-cluster.new"];

/// The absolute paths below a cluster's directory.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub dir: PathBuf,
}

impl Home {
    /// Creates the directory if it is missing; its path becomes absolute and free of links.
    pub fn prepare(dir: &Path) -> Result<Self, PgError> {
        make_dir(dir, 0o755)?;
        Self::at(dir)
    }

    /// Refers to a directory that exists.
    pub fn at(dir: &Path) -> Result<Self, PgError> {
        let dir = dir.canonicalize().map_err(PgError::io("open", dir))?;
        if dir
            .to_str()
            .is_none_or(|text| text.contains(char::is_control))
        {
            return Err(PgError::Name { dir });
        }
        Ok(Self { dir })
    }

    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The directory where data is made until it is complete and renamed.
    pub fn staged(&self) -> PathBuf {
        self.dir.join("data.new")
    }

    /// The name that data gets while it is being replaced.
    pub fn replaced(&self) -> PathBuf {
        self.dir.join("data.old")
    }

    pub fn identity(&self) -> PathBuf {
        self.dir.join("dyno-cluster.json")
    }

    pub fn conf(&self) -> PathBuf {
        self.data().join("dyno.conf")
    }

    pub fn log(&self) -> PathBuf {
        self.dir.join("log/server.log")
    }

    /// Fails if the directory holds anything else.
    pub fn must_be_empty(&self) -> Result<(), PgError> {
        match first_other_entry(&self.dir, &OURS)? {
            None => Ok(()),
            Some(found) => Err(PgError::NotACluster {
                dir: self.dir.clone(),
                found,
            }),
        }
    }

    /// Takes ownership of the cluster until the file is closed.
    pub fn lock(&self) -> Result<File, PgError> {
        let path = self.dir.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options
            .mode(0o644)
            .open(&path)
            .map_err(PgError::io("open", &path))?;
        match lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // The holder's name is for the error message only. The lock itself decides.
                if file.read_to_string(&mut holder).is_err() || holder.trim().is_empty() {
                    holder = "another process".to_owned();
                }
                return Err(PgError::InUse {
                    dir: self.dir.clone(),
                    holder: holder.trim().to_owned(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(PgError::io("lock", &path)(error)),
        }
        let program = std::env::current_exe().ok();
        let name = program
            .as_deref()
            .and_then(Path::file_name)
            .unwrap_or_default();
        let text = format!(
            "process {} ({})\n",
            std::process::id(),
            name.to_string_lossy()
        );
        // The text names this process from here on. A shorter one written over that of the last
        // holder would leave the end of that.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(PgError::io("write", &path))?;
        Ok(file)
    }

    /// Creates `run/` for the server's user, and `log/`, whose file the server gets as an open
    /// descriptor.
    pub fn make_rooms(&self, owner: &Owner) -> Result<(), PgError> {
        owner.reach(&self.dir)?;
        for name in ["run", "log"] {
            let room = self.dir.join(name);
            make_dir(&room, 0o700)?;
            // A directory that existed has kept its mode, and may be open to other users.
            let mode = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&room, mode).map_err(PgError::io("close", &room))?;
        }
        owner.give(&self.dir.join("run"))
    }

    /// The directory for the socket: `run/`, or a short one in `/tmp` if its path is too long for a
    /// socket or has characters that are special in connection strings. `recorded` is the one used
    /// so far.
    pub fn socket_dir(
        &self,
        owner: &Owner,
        recorded: Option<&Path>,
        port: u16,
    ) -> Result<PathBuf, PgError> {
        let run = self.dir.join("run");
        let file = run.join(format!(".s.PGSQL.{port}"));
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+=~".contains(b);
        let bytes = file.as_os_str().as_bytes();
        if bytes.len() <= SOCKET_PATH_BYTES && bytes.iter().all(plain) {
            return Ok(run);
        }
        if let Some(short) = recorded
            && belongs_to(short, owner)
        {
            return Ok(short.to_path_buf());
        }
        let short = PathBuf::from(format!("/tmp/dyno-{:016x}", random_u64()?));
        // It fails if the directory exists, so one that another user made is never used.
        let made = fs::DirBuilder::new().mode(0o700).create(&short);
        made.map_err(PgError::io("create", &short))?;
        owner.give(&short)?;
        Ok(short)
    }

    /// Opens the log for the server to append to; a long one is renamed first.
    pub fn open_log(&self) -> Result<File, PgError> {
        let path = self.log();
        if path.metadata().is_ok_and(|m| m.len() > LOG_BYTES) {
            let old = path.with_extension("log.1");
            fs::rename(&path, &old).map_err(PgError::io("set aside", &path))?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o640);
        options.open(&path).map_err(PgError::io("open", &path))
    }
}

/// Locks the file, if necessary after a moment. A process that is just being started holds
/// everything its parent had open until it has become another program, and so also the lock of a
/// cluster that the parent has closed meanwhile.
fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..LOCK_LOOKS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            done => return done,
        }
    }
    file.try_lock()
}

/// Whether a directory in `/tmp` belongs to the server's user and is closed to others.
fn belongs_to(dir: &Path, owner: &Owner) -> bool {
    fs::symlink_metadata(dir)
        .is_ok_and(|m| m.is_dir() && m.uid() == owner.uid && m.mode() & 0o077 == 0)
}

/// Random bits from the kernel.
pub(crate) fn random_u64() -> Result<u64, PgError> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; 8];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(PgError::io("read", path))?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_a_starting_process_still_holds_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        let owner = home.lock().unwrap();
        // As a process that is being started has it: the same open file, closed a little later.
        let inherited = owner.try_clone().unwrap();
        drop(owner);
        let starting = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            drop(inherited);
        });
        let next = home.lock().unwrap();
        starting.join().unwrap();
        let error = home.lock().unwrap_err();
        assert!(matches!(error, PgError::InUse { .. }), "{error}");
        drop(next);
    }
}

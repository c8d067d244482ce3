//! How commands find a store that is served or attached: a folder of its name, with its sockets in
//! it.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{ErrorKind, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use dyno_pages_fuse::DEVICE;

/// Names another folder for all stores, for tests and containers. All commands of one store must
/// have the same value.
pub const DIR_VARIABLE: &str = "DYNO_PAGES_DIR";
const TICK: Duration = Duration::from_millis(20);
/// How long a command that only tests a lock may hold it.
const LOOK_WAIT: Duration = Duration::from_secs(2);

/// The folder of one store.
#[derive(Debug, Clone)]
pub struct StoreDir {
    dir: PathBuf,
}

/// The folder that holds those of all stores of this user.
pub fn base() -> anyhow::Result<PathBuf> {
    let of_login = env::var_os("XDG_RUNTIME_DIR");
    match env::var_os(DIR_VARIABLE) {
        Some(dir) => {
            let dir = PathBuf::from(dir);
            let text = dir.display();
            ensure!(
                dir.is_absolute(),
                "{DIR_VARIABLE}={text}: a path from / is needed"
            );
            Ok(dir)
        }
        None => base_of(user()?, of_login.as_deref()),
    }
}

/// Root has one folder, whether the command runs in a login, which sets XDG_RUNTIME_DIR, or under
/// systemd, which does not. That folder also outlives the login.
fn base_of(user: u32, of_login: Option<&OsStr>) -> anyhow::Result<PathBuf> {
    if user == 0 {
        return Ok(PathBuf::from("/run/dyno-pages"));
    }
    let of_user = PathBuf::from(format!("/run/user/{user}"));
    match of_login {
        Some(dir) => Ok(PathBuf::from(dir).join("dyno-pages")),
        None if of_user.is_dir() => Ok(of_user.join("dyno-pages")),
        None => bail!("no folder for run-time files: set XDG_RUNTIME_DIR"),
    }
}

/// The user of this process.
pub fn user() -> anyhow::Result<u32> {
    Ok(fs::metadata("/proc/self").context("/proc/self")?.uid())
}

impl StoreDir {
    /// The folder of the store `name`, which need not exist.
    pub fn from_name(name: &str) -> anyhow::Result<StoreDir> {
        let plain = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        ensure!(
            plain && !name.is_empty() && name.len() <= 40,
            "--name {name}: a name must be 1 to 40 letters, digits, - or _"
        );
        Ok(StoreDir {
            dir: base()?.join(name),
        })
    }

    /// The stores whose folders exist, in the order of their names.
    pub fn all() -> anyhow::Result<Vec<StoreDir>> {
        let base = base()?;
        let entries = match fs::read_dir(&base) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("cannot read {}", base.display()))?,
        };
        let dirs = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut all: Vec<StoreDir> = dirs
            .filter(|dir| dir.is_dir())
            .map(|dir| StoreDir { dir })
            .collect();
        all.sort_by(|a, b| a.dir.cmp(&b.dir));
        Ok(all)
    }

    /// The folder of the store whose holder listens at `socket`.
    pub fn from_holder_socket(socket: &Path) -> anyhow::Result<StoreDir> {
        let dir = socket
            .parent()
            .context("the holder's socket has no folder")?;
        Ok(StoreDir {
            dir: dir.to_path_buf(),
        })
    }

    /// The store's name, which is that of its folder.
    pub fn name(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether the folder exists, and so possibly a store.
    pub fn exists(&self) -> bool {
        self.dir.exists()
    }

    /// Makes the folder, accessible to its owner alone.
    pub fn make(&self) -> anyhow::Result<()> {
        let failed = || format!("cannot make {}", self.dir.display());
        fs::create_dir_all(&self.dir).with_context(failed)?;
        fs::set_permissions(&self.dir, Permissions::from_mode(0o700)).with_context(failed)
    }

    /// Removes it with the files that are known to be in it. A file system that is still mounted
    /// there is never walked into: it may have no server, and then a look at it waits for ever.
    pub fn remove(&self) -> anyhow::Result<()> {
        let removed = |done: std::io::Result<()>| match done {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.dir.display()))
            }
            _ => Ok(()),
        };
        for socket in [self.control(), self.hold()] {
            // A file that is not a socket is not ours: it stays, and so does the folder.
            let ours = fs::symlink_metadata(&socket).is_ok_and(|file| file.file_type().is_socket());
            if ours {
                removed(fs::remove_file(socket))?;
            }
        }
        for file in [self.device(), self.log(), self.serving()] {
            removed(fs::remove_file(file))?;
        }
        removed(fs::remove_dir(self.mount()))?;
        removed(fs::remove_dir(&self.dir))
    }

    /// Takes the lock of the name, which every command takes before it makes, changes or ends
    /// anything there; waits for another command for as long as `wait`.
    pub fn lock(&self, wait: Duration) -> anyhow::Result<NameLock> {
        let path = self.dir.with_extension("lock");
        let failed = || format!("cannot lock {}", path.display());
        if let Some(base) = path.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder.create(base).with_context(failed)?;
        }
        let until = Instant::now() + wait;
        loop {
            let mut options = File::options();
            let options = options.read(true).write(true).create(true).truncate(false);
            let mut file = options.open(&path).with_context(failed)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => {
                    note_process(&mut file)?;
                    let dir = self.dir.clone();
                    return Ok(NameLock { file, path, dir });
                }
                // The last owner removed the file between our open and our lock, so this lock is on
                // a file that no other command will open. The loop opens the new one.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(TICK),
                Err(TryLockError::WouldBlock) => {
                    let process = fs::read_to_string(&path).unwrap_or_default();
                    bail!(
                        "another command is at work on {}, process {}",
                        self.name(),
                        process.trim()
                    );
                }
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
            }
        }
    }

    /// Marks the store as served by this process until the returned value is dropped.
    pub fn serve(&self) -> anyhow::Result<Serves> {
        let path = self.serving();
        let failed = || format!("cannot lock {}", path.display());
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).with_context(failed)?;
        let until = Instant::now() + LOOK_WAIT;
        // A command that tests whether there is a server holds a shared lock for a moment. A lock
        // that lasts is a real server's.
        while file.try_lock().is_err() {
            if Instant::now() >= until {
                bail!(
                    "process {} serves {} already",
                    self.server_text(),
                    self.name()
                );
            }
            thread::sleep(TICK);
        }
        note_process(&mut file)?;
        Ok(Serves { _file: file })
    }

    /// The process that serves the store, whether it answers or not. The kernel drops the lock when
    /// the process dies, so a stale file is never taken for a server.
    pub fn server(&self) -> Option<u32> {
        let file = File::options().read(true).open(self.serving()).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => self.server_text().parse().ok(),
            _ => None,
        }
    }

    /// Refuses a name that a process serves.
    pub fn refuse_served(&self) -> anyhow::Result<()> {
        if let Some(process) = self.server() {
            let name = self.name();
            bail!("{name}: process {process} serves it already; take another --name, or end it");
        }
        Ok(())
    }

    /// Waits until no process serves it.
    pub fn wait_for_end(&self) -> anyhow::Result<()> {
        let file = File::options().read(true).open(self.serving());
        match file {
            Ok(file) => Ok(file.lock_shared().context("cannot wait for the daemon")?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).context("cannot wait for the daemon"),
        }
    }

    fn server_text(&self) -> String {
        let text = fs::read_to_string(self.serving()).unwrap_or_default();
        text.trim().to_string()
    }

    /// The socket of the process that serves the store.
    pub fn control(&self) -> PathBuf {
        self.dir.join("control")
    }

    /// The socket of the process that holds its memory.
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

    /// Whether `file` is the one that a loop device of this store stands for. When its file system
    /// was taken away, the system shows it as if it lay at the root.
    pub fn has(&self, file: &Path) -> bool {
        let dir = fs::canonicalize(&self.dir).unwrap_or_else(|_| self.dir.clone());
        file == dir.join("mount").join(DEVICE) || file == Path::new("/").join(DEVICE)
    }

    /// The file to which its processes write their messages.
    pub fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Locked by the process that serves it, whose number is in it.
    fn serving(&self) -> PathBuf {
        self.dir.join("serving")
    }
}

/// The lock of a name. Dropping it removes its file if the store is gone.
#[derive(Debug)]
pub struct NameLock {
    file: File,
    path: PathBuf,
    dir: PathBuf,
}

impl Drop for NameLock {
    fn drop(&mut self) {
        // Removed while it is still locked. A command that waits for the lock then finds that its
        // file is no longer at the path, and opens the new one.
        if !self.dir.exists() && is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Keeps the lock that marks a store as served.
#[derive(Debug)]
pub struct Serves {
    _file: File,
}

fn is_at(file: &File, path: &Path) -> bool {
    let number = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let there = fs::metadata(path).map(number).ok();
    there.is_some() && there == file.metadata().map(number).ok()
}

fn note_process(file: &mut File) -> anyhow::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    Ok(writeln!(file, "{}", std::process::id())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stores_of_root_are_in_one_place_whether_a_login_has_a_folder_or_not() {
        let of_login = OsStr::new("/run/user/0");
        let with = base_of(0, Some(of_login)).expect("a folder");
        assert_eq!(with, base_of(0, None).expect("a folder"));
        assert_eq!(with, Path::new("/run/dyno-pages"));
        let other = base_of(1000, Some(OsStr::new("/run/user/1000"))).expect("a folder");
        assert_eq!(other, Path::new("/run/user/1000/dyno-pages"));
        // No user has this number.
        let none = base_of(u32::MAX - 1, None)
            .expect_err("no folder")
            .to_string();
        assert!(none.contains("set XDG_RUNTIME_DIR"), "{none}");
    }
}

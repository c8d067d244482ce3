//! The file system of this machine. Has `unsafe`: three system calls that the standard library does
//! not offer, renameat2, statfs and statvfs.

use std::ffi::CString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::block_file::BlockFile;
use crate::device::{Claim, Existing, FileSystem};
use crate::error::IoError;
use crate::opening::Opening;
use crate::queue::{InlineQueue, Queue};
use crate::ring::Ring;
use crate::storage::{Blocks, Storage};

/// How often a lock that is held is tried again before it counts as another writer's, and the pause
/// between two attempts.
const LOCK_LOOKS: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// How often a claim is tried again because the file was renamed or removed meanwhile.
const MOST_CLAIMS: u32 = 16;

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostFiles;

impl HostFiles {
    /// Whether a file at `path` lies, or would lie, in memory (tmpfs). False if the system cannot
    /// tell.
    pub(crate) fn in_memory(path: &Path) -> bool {
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return false;
        }
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let Ok(folder) = CString::new(folder.as_os_str().as_bytes()) else {
            return false;
        };
        let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: the name ends in NUL, and both arguments outlive the call.
        if unsafe { libc::statfs(folder.as_ptr(), found.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: the call has succeeded, so it has filled the structure.
        let found = unsafe { found.assume_init() };
        found.f_type == libc::TMPFS_MAGIC
    }
}

impl HostFiles {
    /// Bytes that an ordinary user can still write below `directory`.
    pub(crate) fn free_bytes(&self, directory: &Path) -> Result<u64, IoError> {
        const ACTION: &str = "ask for the free room of";
        let name = CString::new(directory.as_os_str().as_bytes())
            .map_err(|e| IoError::system(ACTION, directory, e.into()))?;
        let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the name ends in NUL, and both arguments outlive the call.
        if unsafe { libc::statvfs(name.as_ptr(), found.as_mut_ptr()) } != 0 {
            return Err(IoError::system(
                ACTION,
                directory,
                io::Error::last_os_error(),
            ));
        }
        // SAFETY: the call has succeeded, so it has filled the structure.
        let found = unsafe { found.assume_init() };
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// Locks the file, if necessary after a moment. A process that is just being started holds
/// everything its parent had open until it has become another program, and so also the locks of
/// files that the parent has closed meanwhile.
fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..LOCK_LOOKS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            done => return done,
        }
    }
    file.try_lock()
}

impl FileSystem for HostFiles {
    fn claim(&self, path: &Path) -> Result<Claim, IoError> {
        let fail = |e| IoError::system("create", path, e);
        for _ in 0..MOST_CLAIMS {
            let mut options = OpenOptions::new();
            let file = options
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .map_err(fail)?;
            match lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(IoError::Busy {
                        path: path.to_path_buf(),
                    });
                }
                // Without locks (some network file systems) two writers of one file go unnoticed,
                // which is not a reason to refuse a single one.
                Err(TryLockError::Error(e)) if lacks_locks(&e) => {}
                Err(TryLockError::Error(e)) => return Err(fail(e)),
            }
            // The writer before us may have renamed the file to its final name after we opened it,
            // and then our lock is on a finished file.
            let ours = file.metadata().map_err(fail)?;
            match std::fs::metadata(path) {
                Ok(named) if (named.dev(), named.ino()) == (ours.dev(), ours.ino()) => {
                    return Ok(Claim::by(file));
                }
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(fail(e)),
            }
        }
        Err(IoError::Busy {
            path: path.to_path_buf(),
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        match path.symlink_metadata() {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(IoError::system("look at", path, e)),
        }
    }

    fn rename(&self, from: &Path, to: &Path, existing: Existing) -> Result<(), IoError> {
        let renamed = match existing {
            Existing::Replace => std::fs::rename(from, to),
            Existing::Refuse => rename_to_free_name(from, to),
        };
        renamed.map_err(|e| {
            if existing == Existing::Refuse && e.kind() == io::ErrorKind::AlreadyExists {
                IoError::Exists {
                    path: to.to_path_buf(),
                }
            } else {
                IoError::system("give its final name to", to, e)
            }
        })
    }

    fn remove(&self, path: &Path) -> Result<(), IoError> {
        std::fs::remove_file(path).map_err(|e| IoError::system("remove", path, e))
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), IoError> {
        File::open(directory)
            .and_then(|open| open.sync_all())
            .map_err(|e| IoError::system("sync the directory", directory, e))
    }
}

impl Storage for HostFiles {
    fn make_directory(&self, directory: &Path) -> Result<(), IoError> {
        std::fs::create_dir_all(directory).map_err(|e| IoError::system("create", directory, e))
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, IoError> {
        let fail = |e| IoError::system("list", directory, e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if entry.file_type().map_err(fail)?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn open(&self, path: &Path, opening: Opening) -> Result<Box<dyn Blocks>, IoError> {
        Ok(Box::new(BlockFile::open_with(path, opening)?))
    }

    fn queue(
        &self,
        path: &Path,
        opening: Opening,
        depth: usize,
    ) -> Result<Box<dyn Queue>, IoError> {
        match Ring::open(path, opening, depth) {
            Err(IoError::UringRefused { .. }) => {
                let file = BlockFile::open_with(path, opening)?;
                Ok(Box::new(InlineQueue::new(file)))
            }
            ring => Ok(Box::new(ring?)),
        }
    }

    fn room_bytes(&self, directory: &Path) -> Result<u64, IoError> {
        self.free_bytes(directory)
    }
}

fn lacks_locks(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS)
    )
}

/// Renames only if the name is free, in one step, so that one of two writers fails.
fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    let from_c = CString::new(from.as_os_str().as_bytes())?;
    let to_c = CString::new(to.as_os_str().as_bytes())?;
    // SAFETY: both arguments are strings that end in NUL and outlive the call; the call touches no
    // other memory of ours.
    let status = unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            from_c.as_ptr(),
            libc::AT_FDCWD,
            to_c.as_ptr(),
            libc::RENAME_NOREPLACE,
        )
    };
    if status == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) {
        return Err(error);
    }
    // The file system does not know the flag. Making a second name is also refused if it exists; a
    // crash before the first name is removed leaves a complete file with two names.
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}

//! Mounts and unmounts the file system. Has `unsafe`: the system calls for it.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::FuseError;

/// The descriptor that requests are read from, and replies written to.
#[derive(Debug)]
pub struct Connection {
    pub(crate) file: File,
}

impl Connection {
    /// The connection that a holder kept for a daemon that died.
    pub fn from_held(file: OwnedFd) -> Self {
        Self { file: file.into() }
    }

    /// Duplicates the descriptor, for a thread or for a holder.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            file: self.file.try_clone()?,
        })
    }

    /// The descriptor, for a holder to keep.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Mounts the file system with its one file at the empty directory `at`, readable by root alone.
/// Threads must serve it before any process looks into it, or that process waits.
///
/// # Errors
/// Without root, without `/dev/fuse`, or when `at` is not a directory.
pub fn mount(at: &Path) -> Result<Connection, FuseError> {
    let device = Path::new("/dev/fuse");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC)
        .open(device)
        .map_err(FuseError::system("open", device))?;
    let options = format!(
        "fd={},rootmode=40700,user_id=0,group_id=0,default_permissions",
        file.as_raw_fd()
    );
    let (target, options) = (text(at)?, CString::new(options).map_err(|_| nul(at))?);
    // SAFETY: strings that end in NUL and live through the call.
    let done = unsafe {
        libc::mount(
            c"dyno-pages".as_ptr(),
            target.as_ptr(),
            c"fuse.dyno-pages".as_ptr(),
            libc::MS_NODEV | libc::MS_NOSUID | libc::MS_NOEXEC | libc::MS_NOATIME,
            options.as_ptr().cast(),
        )
    };
    match done {
        0 => Ok(Connection { file }),
        _ => Err(FuseError::last_os_error("mount a file system at", at)),
    }
}

/// Unmounts the file system. Processes that have the file open keep it until they close it.
///
/// # Errors
/// When nothing is mounted there.
pub fn unmount(at: &Path) -> Result<(), FuseError> {
    let target = text(at)?;
    // SAFETY: a string that ends in NUL and lives through the call.
    match unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) } {
        0 => Ok(()),
        _ => Err(FuseError::last_os_error("unmount", at)),
    }
}

fn text(path: &Path) -> Result<CString, FuseError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| nul(path))
}

fn nul(path: &Path) -> FuseError {
    FuseError::system("name", path)(io::ErrorKind::InvalidInput.into())
}

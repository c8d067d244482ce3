//! Making a directory the file system, and a directory again. Has `unsafe`: the system's calls.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::FuseError;

/// The end that requests come out of, and replies go into.
#[derive(Debug)]
pub struct Connection {
    pub(crate) file: File,
}

impl Connection {
    /// The one that a holder kept.
    pub fn of_held(file: OwnedFd) -> Self {
        Self { file: file.into() }
    }

    /// Another handle on the same end, for a thread or for a holder.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            file: self.file.try_clone()?,
        })
    }

    /// The descriptor.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Makes the empty directory `at` a file system with the one file, readable by root alone. Another
/// user must serve before anybody looks into it.
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
        .map_err(FuseError::of("open", device))?;
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
        _ => Err(FuseError::last("mount a file system at", at)),
    }
}

/// Takes the file system away; who has the file open keeps it, as the system does.
///
/// # Errors
/// When nothing is mounted there.
pub fn unmount(at: &Path) -> Result<(), FuseError> {
    let target = text(at)?;
    // SAFETY: a string that ends in NUL and lives through the call.
    match unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) } {
        0 => Ok(()),
        _ => Err(FuseError::last("unmount", at)),
    }
}

fn text(path: &Path) -> Result<CString, FuseError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| nul(path))
}

fn nul(path: &Path) -> FuseError {
    FuseError::of("name", path)(io::ErrorKind::InvalidInput.into())
}

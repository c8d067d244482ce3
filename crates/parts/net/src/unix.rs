//! Unix sockets that have a file. Has `unsafe`: connecting with a time limit, which the standard
//! library lacks.
//!
//! A file that is in the way is removed only if it is a socket that nothing listens at. Everything
//! else stays: an ordinary file, a listener that is too busy to accept, and the socket of another
//! process that took the path after this one had lost it.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::ring::owned;

/// How long to wait for another process's lock on the directory; it holds it for a few system
/// calls.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// Between two attempts to take that lock.
const LOCK_POLL: Duration = Duration::from_millis(5);
/// How long a listener whose backlog is full may keep the probe waiting before it counts as alive.
const PROBE_WAIT: Duration = Duration::from_millis(20);

/// Connects to the socket at `path`. A listener whose backlog stays full for `timeout` gives
/// [`io::ErrorKind::WouldBlock`]; the standard library would wait for it without a limit.
pub fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    // SAFETY: numbers only.
    let socket =
        owned(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: a structure of numbers, for which all zeros is a value.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = path.as_os_str().as_bytes();
    // The last byte stays zero, and a name that begins with zero would be an abstract one, without
    // a file.
    if name.is_empty() || name.len() >= address.sun_path.len() || name.contains(&0) {
        let reason = "a path of a socket has 1 to 107 bytes";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    for (byte, of_name) in address.sun_path.iter_mut().zip(name) {
        *byte = *of_name as libc::c_char;
    }
    let stream = UnixStream::from(socket);
    // The limit on sending holds for connecting too; unix(7) does not say so, but the kernel does
    // it.
    stream.set_write_timeout(Some(timeout.max(Duration::from_millis(1))))?;
    // SAFETY: the structure outlives the call, and its whole length is given.
    let answer = unsafe {
        libc::connect(
            stream.as_raw_fd(),
            (&raw const address).cast(),
            mem::size_of::<libc::sockaddr_un>() as libc::socklen_t,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    stream.set_write_timeout(None)?;
    Ok(stream)
}

/// A listening socket and its file, which is removed with the value if it is still ours.
#[derive(Debug)]
pub struct BoundListener {
    listener: UnixListener,
    path: PathBuf,
    file: Identity,
}

/// What tells a file from a later one at the same path. The inode of a socket's file is not used
/// again as long as the socket is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn from_metadata(metadata: &Metadata) -> Identity {
        Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

impl BoundListener {
    /// Listens at `path`. A socket that nothing listens at is replaced; anything else at the path
    /// stays and is an error.
    pub fn bind(path: &Path) -> io::Result<BoundListener> {
        // Between bind and listen a socket refuses connections as a dead one does. The lock keeps
        // other processes of ours from taking it for dead then, and from replacing the same dead
        // socket.
        let _lock = lock_directory(path)?;
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_unserved(path)?;
                UnixListener::bind(path)?
            }
            other => other?,
        };
        let file = Identity::from_metadata(&fs::symlink_metadata(path)?);
        Ok(BoundListener {
            listener,
            path: path.to_owned(),
            file,
        })
    }

    /// The listening socket, which the caller may accept from.
    pub fn socket(&self) -> &UnixListener {
        &self.listener
    }
}

impl AsFd for BoundListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for BoundListener {
    fn drop(&mut self) {
        // Without the lock another process could bind the path between our look and the removal. If
        // the lock is not available the file stays, and the next listener replaces it.
        let Ok(_lock) = lock_directory(&self.path) else {
            return;
        };
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| Identity::from_metadata(&metadata) == self.file);
        if ours {
            // A file that cannot be removed stays, and the next listener replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the file at `path` if it is a socket that nothing listens at.
fn remove_unserved(path: &Path) -> io::Result<()> {
    let before = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if !before.file_type().is_socket() {
        let reason = "a file that is not a socket is there; it stays, so name another path";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
    }
    match connect(path, PROBE_WAIT) {
        // Only this error says that nothing listens.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        // A listener that accepts, or whose backlog is full.
        Ok(_) => return Err(io::Error::from_raw_os_error(libc::EADDRINUSE)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
        }
        Err(error) => {
            let reason =
                format!("a socket is there, and whether it is served is not known: {error}");
            return Err(io::Error::new(error.kind(), reason));
        }
    }
    // A program that does not use our lock may have replaced the file while we asked.
    let now = fs::symlink_metadata(path)?;
    if Identity::from_metadata(&now) != Identity::from_metadata(&before) {
        return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
    }
    fs::remove_file(path)
}

/// Locks the directory of `path` against other processes that bind or remove sockets in it. No file
/// is created for it.
fn lock_directory(path: &Path) -> io::Result<File> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = File::open(directory)?;
    let end = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(LOCK_POLL),
            Err(TryLockError::WouldBlock) => {
                let reason = format!("another process holds a lock on {}", directory.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

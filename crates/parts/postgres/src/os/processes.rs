//! The processes of one data directory, and signals that reach no other. Unsafe: system calls on
//! process descriptors.
//!
//! A server's processes, children included, have its data directory as their working directory, so
//! the kernel says which they are, whichever process started them. A signal goes through a process
//! descriptor that was opened before that was looked at, so it cannot hit a later process with the
//! same number.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A running process of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: u32,
    /// Its parent, which is the postmaster for the children of a living one.
    parent: u32,
    directory: (u64, u64),
}

/// All living processes of the server whose data directory is `data`, the postmaster first if it
/// lives.
pub(crate) fn of_directory(data: &Path) -> Vec<Process> {
    let Ok(metadata) = fs::metadata(data) else {
        return Vec::new();
    };
    let directory = (metadata.dev(), metadata.ino());
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<Process> = pids
        .filter_map(|pid| Process::look(pid, directory))
        .collect();
    let numbers: Vec<u32> = found.iter().map(|process| process.pid).collect();
    found.sort_by_key(|process| (numbers.contains(&process.parent), process.pid));
    found
}

/// The process `pid`, if it is alive and belongs to the server whose data directory is `data`.
pub(crate) fn one_of_directory(data: &Path, pid: u32) -> Option<Process> {
    let metadata = fs::metadata(data).ok()?;
    Process::look(pid, (metadata.dev(), metadata.ino()))
}

impl Process {
    /// The process `pid`, if it is alive and `directory` (device, inode) is its working directory.
    fn look(pid: u32, directory: (u64, u64)) -> Option<Self> {
        let place = fs::metadata(format!("/proc/{pid}/cwd")).ok()?;
        if (place.dev(), place.ino()) != directory {
            return None;
        }
        // "PID (NAME) STATE PARENT ..."; the name may contain any character.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (head, tail) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1;
        let mut fields = tail.split_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        // A zombie is listed until its parent collects it, but it holds nothing any more. Waiting
        // for it could take for ever, because the parent may be we ourselves.
        let living = name == "postgres" && state != "Z" && state != "X";
        living.then_some(Self {
            pid,
            parent,
            directory,
        })
    }

    /// Sends a signal. It is not an error if the process has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let Some(descriptor) = open_descriptor(self.pid)? else {
            return Ok(());
        };
        // The descriptor stands for one process for good. If that is one of ours now, the signal
        // cannot reach another that gets its number later.
        if Self::look(self.pid, self.directory).is_none() {
            return Ok(());
        }
        // SAFETY: the descriptor is open, no signal information is passed, and flags must be 0.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                descriptor.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        if answer == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ESRCH) {
            return Ok(());
        }
        Err(error)
    }
}

fn open_descriptor(pid: u32) -> io::Result<Option<OwnedFd>> {
    // SAFETY: no memory is passed.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if answer >= 0 {
        let descriptor = i32::try_from(answer).map_err(io::Error::other)?;
        // SAFETY: the kernel just opened it for us, and nothing else has it.
        return Ok(Some(unsafe { OwnedFd::from_raw_fd(descriptor) }));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) {
        return Ok(None);
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_in_the_directory_that_is_no_server_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .current_dir(dir.path())
            .spawn()
            .unwrap();
        assert_eq!(of_directory(dir.path()), []);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

//! The system calls that std has no door for: waiting with a bill, killing a group, polling.
//! This module holds the `unsafe` of `usage`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::error::MachineError;

/// What the kernel charged a child and the descendants it waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bill {
    pub exit: Exit,
    pub user_s: f64,
    pub system_s: f64,
    pub max_rss_bytes: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

/// How a child ended, as the kernel reports it to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself and returned this code.
    Code(i32),
    /// This signal ended it, sent by us or by another.
    Signal(i32),
}

impl Exit {
    /// Whether the child says that all went well.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A descriptor that becomes readable when the process ends; `None` where the kernel (before 5.3)
/// or a sandbox has none, and then the caller looks more often.
pub(super) fn open_pidfd(pid: u32) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the kernel just handed us this descriptor and nothing else owns it.
    Some(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Whether the child has ended; it stays a zombie, so that its /proc files can still be read and
/// its process id is not given away.
pub(super) fn has_ended(pid: u32) -> Result<bool, MachineError> {
    // SAFETY: a zeroed siginfo_t is a valid value, and waitid writes only into it.
    let (rc, seen_pid) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let rc = libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut info, flags);
        (rc, info.si_pid())
    };
    // WNOHANG gives 0 both for an ended child and for one that still runs; only the process id in
    // the answer tells them apart.
    match rc {
        0 => Ok(seen_pid != 0),
        _ if interrupted() => Ok(false),
        _ => Err(MachineError::process("look at", pid)),
    }
}

/// Collects an ended child and its bill.
pub(super) fn collect(pid: u32) -> Result<Bill, MachineError> {
    let mut status = 0;
    // SAFETY: a zeroed rusage is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // A signal to the runner, such as Ctrl-C, interrupts the wait; the child must be collected all
    // the same, or it stays a zombie until the runner ends.
    loop {
        // SAFETY: both pointers are to live locals of the right type.
        let rc = unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) };
        if rc == pid as libc::pid_t {
            break;
        }
        if !interrupted() {
            return Err(MachineError::process("wait for", pid));
        }
    }
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    };
    Ok(Bill {
        exit,
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss as u64 * 1024,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    })
}

/// This process's own CPU seconds and peak resident bytes.
pub(super) fn own_usage() -> (f64, u64) {
    // SAFETY: a zeroed rusage is a valid value, and getrusage writes only into it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    (
        seconds(usage.ru_utime) + seconds(usage.ru_stime),
        usage.ru_maxrss as u64 * 1024,
    )
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 * 1e-6
}

/// Kills every process of the group that `leader` leads. Call it only while the leader is not
/// collected: its id, and so the group's, cannot have been given to anyone else.
pub(super) fn kill_group(leader: u32) {
    // SAFETY: killpg takes two integers. A group that is gone already is what we want.
    unsafe { libc::killpg(leader as libc::pid_t, libc::SIGKILL) };
}

/// Kills every process of the caller's group, the caller included.
pub(super) fn kill_own_group() {
    // SAFETY: kill takes two integers; 0 stands for the group of the caller.
    unsafe { libc::kill(0, libc::SIGKILL) };
}

/// Makes reads and writes on `fd` return at once.
pub(super) fn set_nonblocking(fd: &impl AsRawFd) -> io::Result<()> {
    let fd = fd.as_raw_fd();
    // SAFETY: fcntl with these commands takes integers; `fd` is open for the borrow.
    let rc = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        if flags < 0 {
            flags
        } else {
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
        }
    };
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Waits until one of `fds` is ready or `timeout` has passed. A negative descriptor is skipped.
pub(super) fn poll(fds: &mut [libc::pollfd], timeout: Duration) -> io::Result<()> {
    // Rounded up: a wait of zero would spin until the last millisecond is over.
    let timeout_ms = timeout.as_millis().min(60_000) as libc::c_int + 1;
    // SAFETY: the pointer and the length describe one live slice.
    let rc = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) };
    if rc < 0 && !interrupted() {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}

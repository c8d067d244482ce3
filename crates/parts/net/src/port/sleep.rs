//! Sleeps until a descriptor has something to report. Has `unsafe`: poll, epoll and eventfd.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::ring::owned;

/// The most events that one call returns; others follow with the next.
const EVENTS: usize = 256;

/// What is waited for on one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    /// Bytes to read, or the end.
    pub read: bool,
    /// Room to write into.
    pub write: bool,
}

/// Waits for one descriptor, at most `wait`. A signal ends the wait as well.
pub fn wait_one(fd: BorrowedFd<'_>, interest: Interest, wait: Duration) -> io::Result<()> {
    let mut events = 0;
    if interest.read {
        events |= libc::POLLIN;
    }
    if interest.write {
        events |= libc::POLLOUT;
    }
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    };
    // SAFETY: one structure, which outlives the call.
    let count = unsafe { libc::poll(&raw mut poll, 1, millis(wait)) };
    done(count).map(drop)
}

/// Waits until one of the descriptors is readable, at most `wait`, or without a limit. A signal
/// ends the wait as well.
pub fn wait_readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    wait: Option<Duration>,
) -> io::Result<()> {
    let mut polls = fds.map(|fd| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: as many structures as is said, which outlive the call.
    let count = unsafe {
        libc::poll(
            polls.as_mut_ptr(),
            N as libc::nfds_t,
            wait.map_or(-1, millis),
        )
    };
    done(count).map(drop)
}

/// An epoll instance, level-triggered: what is not handled is reported again.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: flags only.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Epoll)
    }

    /// Starts to watch `fd`; its events carry `key`. A descriptor that is closed leaves by itself.
    pub fn add(&self, fd: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, key, interest)
    }

    pub fn change(&self, fd: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, key, interest)
    }

    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let nothing = Interest {
            read: false,
            write: false,
        };
        self.control(libc::EPOLL_CTL_DEL, fd, 0, nothing)
    }

    fn control(
        &self,
        action: libc::c_int,
        fd: BorrowedFd<'_>,
        key: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut events = 0;
        if interest.read {
            events |= libc::EPOLLIN;
        }
        if interest.write {
            events |= libc::EPOLLOUT;
        }
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: key,
        };
        // SAFETY: the structure outlives the call, which copies it.
        let result =
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), action, fd.as_raw_fd(), &raw mut event) };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits at most `wait` (not at all if it is zero), and returns the keys of the descriptors
    /// with events.
    pub fn wait(&self, wait: Duration, mut on_key: impl FnMut(u64)) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // SAFETY: room for as many events as is said, which outlives the call.
        let count = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS as libc::c_int,
                millis(wait),
            )
        };
        let count = done(count)?;
        for event in &events[..count] {
            on_key(event.u64);
        }
        Ok(())
    }
}

/// A counter (eventfd) whose change wakes an epoll.
pub fn event_counter() -> io::Result<OwnedFd> {
    // SAFETY: flags only.
    owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// Whole milliseconds, rounded up so that a short wait does not become a spin.
fn millis(wait: Duration) -> libc::c_int {
    let millis = wait.as_nanos().div_ceil(1_000_000);
    libc::c_int::try_from(millis).unwrap_or(libc::c_int::MAX)
}

/// The count of a call; 0 for one that a signal cut short.
fn done(count: libc::c_int) -> io::Result<usize> {
    if count >= 0 {
        return Ok(count as usize);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        error => Err(error),
    }
}

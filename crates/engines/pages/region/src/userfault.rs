//! Page faults that the system hands to the program: `userfaultfd(2)` and `ioctl_userfaultfd(2)`.
//! Has `unsafe`: the calls and their structures (linux/userfaultfd.h).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use dyno_pages::PAGE_BYTES;

use crate::RegionError;

mod event;
mod foreign;

pub use event::Event;
pub use foreign::Ordered;

/// Which code may touch memory whose faults are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The program, and system calls that it gives the memory to, direct I/O included (Linux 6.8
    /// and later).
    Everybody,
    /// The program, and system calls that copy. Transfers that the kernel does by itself (O_DIRECT,
    /// registered buffers of io_uring, RDMA) must not use the region: the kernel is too old to say
    /// which pages it uses so, and what it puts into a page after the page was taken out is lost.
    /// Read into other memory, and copy.
    CopiesOnly,
    /// Only the program; a system call fails with EFAULT where a page is not in memory.
    ProgramOnly,
}

/// A touch of memory that the system does not serve by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The address that was touched.
    pub address: u64,
    /// Whether the touch was a write.
    pub write: bool,
    /// Whether the page is there but protected from writing; otherwise it is missing.
    pub protected: bool,
}

/// The descriptor that faults are read from, and orders given to.
#[derive(Debug)]
pub struct Userfault {
    file: OwnedFd,
    /// Whether the kernel can move pages ([`Userfault::move_page`]).
    moves: bool,
}

/// What became of a page that was to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The page is at the new address.
    Yes,
    /// The page stays, because a transfer of the kernel goes into it or out of it.
    InUse,
}

const API: u64 = 0xaa;
const READ: u32 = 2;
const READ_WRITE: u32 = 3;
const FEATURE_WRITE_PROTECT: u64 = 1;
const FEATURE_MOVE: u64 = 1 << 16;
/// Which touches of registered memory are handed over, as bits.
const MISSING: u64 = 1;
const PROTECTED: u64 = 2;
const USER_MODE_ONLY: libc::c_int = 1;
/// The most events that are read in one call.
const MESSAGES: usize = 16;

/// The number of an ioctl of this file: direction, length of the structure, letter, number.
const fn ioctl_number(direction: u32, number: u32, bytes: usize) -> u32 {
    (direction << 30) | ((bytes as u32) << 16) | (0xaa << 8) | number
}

#[repr(C)]
struct Move {
    to: u64,
    from: u64,
    bytes: u64,
    mode: u64,
    moved: i64,
}

impl Userfault {
    /// Opens it with the widest access that the system grants.
    ///
    /// # Errors
    /// [`RegionError::NotAllowed`], [`RegionError::NotSupported`].
    pub fn open() -> Result<(Self, Access), RegionError> {
        let (file, access) = descriptor()?;
        // Both protection and moving are asked for at first, because the system does not say
        // beforehand what it can do.
        let mut this = Self { file, moves: true };
        if this.agree(FEATURE_WRITE_PROTECT | FEATURE_MOVE).is_ok() {
            return Ok((this, access));
        }
        // After a refusal the descriptor can be asked once more, for less (kernels before 6.8).
        this.moves = false;
        this.agree(FEATURE_WRITE_PROTECT)
            .map_err(|source| RegionError::NotSupported { source })?;
        let access = match access {
            Access::Everybody => Access::CopiesOnly,
            other => other,
        };
        Ok((this, access))
    }

    fn agree(&self, features: u64) -> io::Result<()> {
        let mut agreed = [API, features, 0u64];
        let number = ioctl_number(READ_WRITE, 0x3f, size_of_val(&agreed));
        self.ioctl(number, &mut agreed)
    }

    /// Whether the kernel can move pages out of memory (Linux 6.8).
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// From now on touches of missing and of protected pages from `start` on are handed over.
    ///
    /// # Errors
    /// The error of the system.
    pub fn register(&self, start: *mut u8, bytes: usize) -> Result<(), RegionError> {
        self.register_as(start, bytes, MISSING | PROTECTED)
    }

    fn register_as(&self, start: *mut u8, bytes: usize, mode: u64) -> Result<(), RegionError> {
        let mut order = [start as u64, bytes as u64, mode, 0];
        self.ioctl(ioctl_number(READ_WRITE, 0, size_of_val(&order)), &mut order)
            .map_err(|source| RegionError::NotSupported { source })
    }

    /// The descriptor, for poll.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Reads the faults that are there now, at most 16; an empty list is not an error.
    ///
    /// # Errors
    /// The system's reason.
    pub fn faults(&self, into: &mut Vec<Fault>) -> io::Result<()> {
        let fault = |event| match event {
            Event::Fault(fault) => Some(fault),
            // A region asks for no other events.
            _ => None,
        };
        self.read(|event| into.extend(fault(event))).map(drop)
    }

    /// Reads the events that wait, at most as many as one call's buffer holds, and returns how many
    /// came.
    fn read(&self, mut each: impl FnMut(Event)) -> io::Result<usize> {
        let mut messages = [0u8; MESSAGES * event::MESSAGE_BYTES];
        // SAFETY: the buffer is good for its length.
        let read = unsafe {
            libc::read(
                self.file.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                messages.len(),
            )
        };
        if read < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        let (whole, _) = messages[..read as usize].as_chunks();
        for message in whole {
            // SAFETY: the message was just read from the kernel, once.
            if let Some(event) = unsafe { event::decode(message) } {
                each(event);
            }
        }
        Ok(whole.len())
    }

    /// Puts a page in place and wakes the threads that wait for it. Returns false if a page is
    /// there already.
    ///
    /// # Errors
    /// The system's reason.
    pub fn place(&self, to: *mut u8, page: &[u8; PAGE_BYTES], protect: bool) -> io::Result<bool> {
        const PROTECT: u64 = 2;
        let mode = if protect { PROTECT } else { 0 };
        loop {
            match self.copy_in(to as u64, page, mode)? {
                Ordered::Done(_) => return Ok(true),
                Ordered::Exists => return Ok(false),
                // The process's mappings were being changed.
                Ordered::Changing => std::thread::yield_now(),
                other => return Err(io::Error::other(format!("a page's place: {other:?}"))),
            }
        }
    }

    /// Moves the page at `from`, with its contents, to `to`, where none is; both lie in registered
    /// memory. The move is one step: a thread that touches `from` finds the page there or missing,
    /// and a transfer that has the page pinned, or pins it at the same time, keeps it where it is.
    ///
    /// # Errors
    /// The system's reason.
    pub fn move_page(&self, from: *mut u8, to: *mut u8) -> io::Result<Moved> {
        // No thread waits at the address that the page goes to.
        const DONT_WAKE: u64 = 1;
        loop {
            let mut order = Move {
                to: to as u64,
                from: from as u64,
                bytes: PAGE_BYTES as u64,
                mode: DONT_WAKE,
                moved: 0,
            };
            match self.ioctl(ioctl_number(READ_WRITE, 5, size_of::<Move>()), &mut order) {
                Ok(()) => return Ok(Moved::Yes),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EBUSY) => return Ok(Moved::InUse),
                    // The process's mappings were being changed.
                    Some(libc::EAGAIN) => std::thread::yield_now(),
                    _ => return Err(error),
                },
            }
        }
    }

    /// Protects the page at `at` from writing, so that a write faults; or ends the protection and
    /// wakes the threads that wait.
    ///
    /// # Errors
    /// The system's reason.
    pub fn protect(&self, at: *mut u8, on: bool) -> io::Result<()> {
        loop {
            let mut order = [at as u64, PAGE_BYTES as u64, u64::from(on)];
            match self.ioctl(ioctl_number(READ_WRITE, 6, size_of_val(&order)), &mut order) {
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
                    std::thread::yield_now()
                }
                done => return done,
            }
        }
    }

    /// Wakes the threads that wait for the page at `at`; they touch it again.
    ///
    /// # Errors
    /// The system's reason.
    pub fn wake(&self, at: *mut u8) -> io::Result<()> {
        self.wake_all(at as u64, PAGE_BYTES as u64)
    }

    /// Makes every touch of the page at `at` raise SIGBUS (Linux 6.6 and later).
    ///
    /// # Errors
    /// The system's reason.
    pub fn poison(&self, at: *mut u8) -> io::Result<()> {
        match self.poison_in(at as u64)? {
            Ordered::Done(_) => Ok(()),
            other => Err(io::Error::other(format!("a page's place: {other:?}"))),
        }
    }

    fn ioctl<T>(&self, number: u32, order: &mut T) -> io::Result<()> {
        // SAFETY: the structure is the one of this call, and lives through it.
        match unsafe {
            libc::ioctl(
                self.file.as_raw_fd(),
                number as _,
                std::ptr::from_mut(order),
            )
        } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// A new descriptor that has not agreed on features yet.
fn descriptor() -> Result<(OwnedFd, Access), RegionError> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    call(flags)
        .or_else(|_| device(flags))
        .map(|file| (file, Access::Everybody))
        .or_else(|_| call(flags | USER_MODE_ONLY).map(|file| (file, Access::ProgramOnly)))
        .map_err(|source| match source.raw_os_error() {
            Some(libc::ENOSYS | libc::EINVAL) => RegionError::NotSupported { source },
            _ => RegionError::NotAllowed { source },
        })
}

fn call(flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    owned(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as RawFd)
}

fn device(flags: libc::c_int) -> io::Result<OwnedFd> {
    const NEW: u32 = 0xaa << 8;
    let device = std::fs::File::open("/dev/userfaultfd")?;
    // SAFETY: the argument is a number.
    owned(unsafe { libc::ioctl(device.as_raw_fd(), NEW as _, flags) })
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

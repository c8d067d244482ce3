//! Orders about memory that may belong to another process, which sent its descriptor: addresses
//! are numbers, and each refusal that is not this program's fault has a name. Has `unsafe`: a flag
//! of the descriptor.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use dyno_pages::PAGE_BYTES;

use super::{Event, MISSING, READ, READ_WRITE, Userfault, descriptor, ioctl_number};
use crate::RegionError;

const FEATURE_EVENT_REMOVE: u64 = 1 << 3;

/// What came of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordered {
    /// Done for this many bytes from the start; fewer than were asked for if the next page was
    /// there already or the memory was being changed. Threads that wait for them go on.
    Done(usize),
    /// The first page was there already. Threads that wait for it wait on, until they are woken.
    Exists,
    /// The memory is being changed, mostly because an event is waiting: read events, try again.
    Changing,
    /// The addresses are not mapped any more, or were never registered.
    Unmapped,
    /// The process has ended, and its memory with it.
    Gone,
}

/// `struct uffdio_range`: an address and a length in bytes.
#[repr(C)]
struct Range {
    start: u64,
    bytes: u64,
}

#[repr(C)]
struct Copy {
    to: u64,
    from: u64,
    bytes: u64,
    mode: u64,
    copied: i64,
}

/// `UFFDIO_ZEROPAGE`, `UFFDIO_POISON` and `UFFDIO_WRITEPROTECT` have this form; the last of them
/// lacks the field that comes back.
#[repr(C)]
struct Fill {
    start: u64,
    bytes: u64,
    mode: u64,
    done: i64,
}

impl Userfault {
    /// Takes over a descriptor that another process made, and makes reads of it not wait.
    ///
    /// # Errors
    /// [`RegionError::NotUserfault`].
    pub fn adopt(file: OwnedFd) -> Result<Self, RegionError> {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let target =
            std::fs::read_link(link).map_err(RegionError::system("look at a descriptor"))?;
        if target.as_os_str() != "anon_inode:[userfaultfd]" {
            return Err(RegionError::NotUserfault {
                what: target.display().to_string(),
            });
        }
        // SAFETY: no memory is passed.
        let done = unsafe {
            let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
            libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        if done < 0 {
            let error = io::Error::last_os_error();
            return Err(RegionError::system("change a descriptor")(error));
        }
        Ok(Self { file, moves: false })
    }

    /// Opens a descriptor for another process to serve: faults of missing pages, and the pages
    /// that are given up if `removals`.
    ///
    /// # Errors
    /// [`RegionError::NotAllowed`], [`RegionError::NotSupported`].
    pub fn open_to_hand_over(removals: bool) -> Result<Self, RegionError> {
        let (file, _) = descriptor()?;
        let this = Self { file, moves: false };
        this.agree(if removals { FEATURE_EVENT_REMOVE } else { 0 })
            .map_err(|source| RegionError::NotSupported { source })?;
        Ok(this)
    }

    /// From now on touches of missing pages from `start` on are handed over.
    ///
    /// # Errors
    /// The error of the system.
    pub fn register_missing(&self, start: *mut u8, bytes: usize) -> Result<(), RegionError> {
        self.register_as(start, bytes, MISSING)
    }

    /// Reads the events that are there now. Returns whether all of them were read: the kernel gives
    /// faults before other events, so an event that explains a fault may come behind it.
    ///
    /// # Errors
    /// The system's reason.
    pub fn events(&self, into: &mut Vec<Event>) -> io::Result<bool> {
        let read = self.read(|event| into.push(event))?;
        Ok(read < super::MESSAGES)
    }

    /// Copies whole pages to missing ones from `to` on.
    ///
    /// # Errors
    /// The system's reason, unless [`Ordered`] has it.
    pub fn copy(&self, to: u64, pages: &[u8]) -> io::Result<Ordered> {
        self.copy_in(to, pages, 0)
    }

    pub(super) fn copy_in(&self, to: u64, pages: &[u8], mode: u64) -> io::Result<Ordered> {
        let mut order = Copy {
            to,
            from: pages.as_ptr() as u64,
            bytes: pages.len() as u64,
            mode,
            copied: 0,
        };
        let done = self.ioctl(ioctl_number(READ_WRITE, 3, size_of::<Copy>()), &mut order);
        ordered(done, pages.len(), order.copied)
    }

    /// Puts zeros in place of missing pages from `start` on; they take no memory until they are
    /// written to.
    ///
    /// # Errors
    /// As [`Userfault::copy`].
    pub fn zero(&self, start: u64, bytes: u64) -> io::Result<Ordered> {
        self.fill(4, start, bytes, 0)
    }

    /// Makes every touch of the page at `start` raise SIGBUS (Linux 6.6 and later).
    ///
    /// # Errors
    /// As [`Userfault::copy`].
    pub fn poison_in(&self, start: u64) -> io::Result<Ordered> {
        self.fill(8, start, PAGE_BYTES as u64, 0)
    }

    fn fill(&self, number: u32, start: u64, bytes: u64, mode: u64) -> io::Result<Ordered> {
        let mut order = Fill {
            start,
            bytes,
            mode,
            done: 0,
        };
        let done = self.ioctl(
            ioctl_number(READ_WRITE, number, size_of::<Fill>()),
            &mut order,
        );
        ordered(done, bytes as usize, order.done)
    }

    /// Wakes the threads that wait for any page of these addresses; they touch it again, and fault
    /// again where it is still missing.
    ///
    /// # Errors
    /// The system's reason.
    pub fn wake_all(&self, start: u64, bytes: u64) -> io::Result<()> {
        let mut range = Range { start, bytes };
        self.ioctl(ioctl_number(READ, 2, size_of::<Range>()), &mut range)
    }

    /// Whether the process whose memory this is has ended. `at` is an address of its memory;
    /// nothing changes there.
    ///
    /// # Errors
    /// The system's reason, unless it says that the memory is there.
    pub fn is_gone(&self, at: u64) -> io::Result<bool> {
        // Ends a protection that the page does not have, without waking a thread. Of all orders
        // this is the one that has no effect, and it looks for the process all the same.
        const DONT_WAKE: u64 = 2;
        let mut order = [at, PAGE_BYTES as u64, DONT_WAKE];
        let done = self.ioctl(ioctl_number(READ_WRITE, 6, size_of_val(&order)), &mut order);
        Ok(ordered(done, PAGE_BYTES, 0)? == Ordered::Gone)
    }
}

/// Names what the kernel said. A partial success is EAGAIN with a length that is not zero.
fn ordered(done: io::Result<()>, asked: usize, achieved: i64) -> io::Result<Ordered> {
    let Err(error) = done else {
        return Ok(Ordered::Done(asked));
    };
    match error.raw_os_error() {
        Some(libc::EAGAIN) if achieved > 0 => Ok(Ordered::Done(achieved as usize)),
        Some(libc::EAGAIN) => Ok(Ordered::Changing),
        Some(libc::EEXIST) => Ok(Ordered::Exists),
        Some(libc::ENOENT) => Ok(Ordered::Unmapped),
        Some(libc::ESRCH) => Ok(Ordered::Gone),
        _ => Err(error),
    }
}

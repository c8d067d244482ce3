//! The shared memory of a ring: a sealed memfd, mapped. Has `unsafe`: mmap, memfd_create, fcntl,
//! futex, and copies from and to memory that another process may change at any moment. Only the
//! atomics in that memory are ever borrowed; bytes are copied out before they are looked at.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::control::Control;
use super::{LayoutError, RingError};

/// The first eight bytes of a ring's memory.
pub const MAGIC: [u8; 8] = *b"DYNORING";
/// The version of the layout that this program writes and reads.
pub const VERSION: u32 = 1;
/// The smallest capacity of a ring.
pub const LEAST_BYTES: u32 = 4 << 10;
/// The largest capacity of a ring.
pub const MOST_BYTES: u32 = 1 << 30;
/// Offsets of the two control blocks, and of the bytes behind them.
const CONTROL_AT: [usize; 2] = [4096, 6144];
const DATA_AT: usize = 8192;

/// Seals that keep the other process from making an access fail: the memory can neither shrink nor
/// grow.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// The memory of two rings, one for each direction.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    bytes: usize,
    capacity: u32,
}

// SAFETY: the mapping is plain shared memory, valid from any thread until it is dropped; every
// access to it goes through atomics or raw copies whose bounds are checked here.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Makes the memory of two rings of `capacity` bytes (a power of two), and the descriptor to
    /// hand over.
    pub fn create(capacity: u32) -> Result<(Memory, OwnedFd), RingError> {
        check_capacity(capacity)?;
        let failed = |action| move |error| RingError::io(action, error);
        // SAFETY: the name is a C string that outlives the call.
        let fd = unsafe {
            libc::memfd_create(
                c"dyno-ring".as_ptr(),
                libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
            )
        };
        let fd = owned(fd).map_err(failed("make the memory of"))?;
        let mut file = File::from(fd);
        let bytes = total_bytes(capacity);
        file.set_len(bytes as u64).map_err(failed("size"))?;
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&capacity.to_le_bytes());
        file.write_all(&header).map_err(failed("write"))?;
        // SAFETY: fcntl with integers only.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } != 0 {
            return Err(RingError::io("seal", io::Error::last_os_error()));
        }
        let fd = OwnedFd::from(file);
        Ok((Memory::map(&fd, bytes, capacity)?, fd))
    }

    /// Maps the memory behind a descriptor that another process made. Nothing in it is trusted
    /// unchecked.
    pub fn open(fd: OwnedFd, most_capacity: u32) -> Result<Memory, RingError> {
        // SAFETY: fcntl with integers only.
        let seals = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(LayoutError::Unsealed.into());
        }
        let file = File::from(fd);
        let length = file
            .metadata()
            .map_err(|error| RingError::io("look at", error))?
            .len();
        let mut header = [0; 16];
        // The header is read once into private memory, because the other process may change it
        // afterwards.
        file.read_exact_at(&mut header, 0)
            .map_err(|error| RingError::io("read", error))?;
        let capacity = check_header(&header)?;
        if capacity > most_capacity {
            return Err(LayoutError::Capacity { found: capacity }.into());
        }
        let expected = total_bytes(capacity) as u64;
        if length != expected {
            return Err(LayoutError::Length {
                found: length,
                expected,
            }
            .into());
        }
        let fd = OwnedFd::from(file);
        Memory::map(&fd, expected as usize, capacity)
    }

    fn map(fd: &OwnedFd, bytes: usize, capacity: u32) -> Result<Memory, RingError> {
        // SAFETY: a new mapping at an address that the kernel chooses; the file is at least that
        // long and sealed against shrinking, so no access can fault.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(RingError::io("map", io::Error::last_os_error()));
        }
        let base = NonNull::new(base.cast::<u8>())
            .ok_or_else(|| RingError::io("map", io::ErrorKind::InvalidData.into()))?;
        Ok(Memory {
            base,
            bytes,
            capacity,
        })
    }

    /// The size of each of the two rings in bytes.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The words that both ends share for one direction.
    pub fn control(&self, direction: Direction) -> &Control {
        // SAFETY: the offset is below DATA_AT, which every mapping covers, and aligned to 128 from
        // a page; the block is made of atomics only, for which any bytes are valid, and lives as
        // long as self.
        unsafe {
            &*self
                .base
                .as_ptr()
                .add(CONTROL_AT[direction as usize])
                .cast::<Control>()
        }
    }

    /// Copies `bytes` into the ring at `position`, around its end if necessary.
    pub fn write(&self, direction: Direction, position: u64, bytes: &[u8]) {
        let (at, first) = self.cut(position, bytes.len());
        let data = self.data(direction);
        // SAFETY: `at + first` and `rest` lie within the ring (see `cut`), `bytes` is private
        // memory, so the two cannot overlap.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), data.add(at), first);
            ptr::copy_nonoverlapping(bytes[first..].as_ptr(), data, bytes.len() - first);
        }
    }

    /// Copies bytes out of the ring at `position`, around its end if necessary.
    pub fn read(&self, direction: Direction, position: u64, into: &mut [u8]) {
        let (at, first) = self.cut(position, into.len());
        let data = self.data(direction);
        let (start, rest) = into.split_at_mut(first);
        // SAFETY: as in `write`, the other way; bytes that change meanwhile are some bytes or
        // others, and are checked once they are private.
        unsafe {
            ptr::copy_nonoverlapping(data.add(at), start.as_mut_ptr(), first);
            ptr::copy_nonoverlapping(data, rest.as_mut_ptr(), rest.len());
        }
    }

    /// The offset of `position` in the ring, and how many of `bytes` lie before the ring's end.
    fn cut(&self, position: u64, bytes: usize) -> (usize, usize) {
        let capacity = self.capacity as usize;
        assert!(bytes <= capacity, "a copy longer than the ring");
        let at = position as usize & (capacity - 1);
        (at, bytes.min(capacity - at))
    }

    fn data(&self, direction: Direction) -> *mut u8 {
        // SAFETY: the mapping holds DATA_AT bytes and two times the capacity.
        unsafe {
            self.base
                .as_ptr()
                .add(DATA_AT + direction as usize * self.capacity as usize)
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing that borrows from it can outlive self.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// One of the two rings in a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Direction {
    /// Written by the end that opened the memory, read by the one that made it.
    ToMaker = 0,
    /// Written by the end that made the memory.
    ToOpener = 1,
}

/// Sleeps while `word` holds `expected`, at most `wait`. The two ends may be different processes.
pub fn futex_wait(word: &AtomicU32, expected: u32, wait: Duration) {
    let wait = libc::timespec {
        tv_sec: wait.as_secs().min(1 << 30) as libc::time_t,
        tv_nsec: wait.subsec_nanos().into(),
    };
    // SAFETY: the word and the time outlive the call. Any return (woken, changed before,
    // interrupted, time over) is right, because the caller looks again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            expected,
            &raw const wait,
        )
    };
}

/// Wakes the thread that sleeps on `word`.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call, which only looks up its address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

/// Takes ownership of a descriptor that a system call has just returned.
pub fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made it, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn total_bytes(capacity: u32) -> usize {
    DATA_AT + 2 * capacity as usize
}

fn check_capacity(capacity: u32) -> Result<(), LayoutError> {
    if !capacity.is_power_of_two() || !(LEAST_BYTES..=MOST_BYTES).contains(&capacity) {
        return Err(LayoutError::Capacity { found: capacity });
    }
    Ok(())
}

/// The capacity in a header, or what is wrong with the header.
pub fn check_header(header: &[u8; 16]) -> Result<u32, LayoutError> {
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    if header[..8] != MAGIC {
        return Err(LayoutError::Magic);
    }
    if word(8) != VERSION {
        return Err(LayoutError::Version { found: word(8) });
    }
    check_capacity(word(12))?;
    Ok(word(12))
}

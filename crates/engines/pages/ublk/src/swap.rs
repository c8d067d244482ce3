//! Makes processes fit to serve swap. Has `unsafe`: system calls that lock memory and mark the
//! process.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use crate::UblkError;

/// Makes this process fit to serve swap: memory that the system allocates for its writes is not
/// reclaimed by swapping; all its memory, that which it maps later included, is allocated and
/// locked at once; and other processes are killed first when memory is short. Call it before the
/// store is opened: the store's arena is then locked when it is mapped, and a daemon that takes
/// over a device waits for no write to that device when it allocates. Call it before a device is
/// made or taken over in any case, because the threads of a device inherit the first of these. Do
/// not compact such a store: what is given back would have to be allocated again.
///
/// # Errors
/// If the process is not root's, or there is too little memory.
pub fn prepare_for_swap() -> Result<(), UblkError> {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // The mark comes first, because to lock memory is to allocate it.
    // SAFETY: the calls take numbers.
    unsafe {
        check(
            "become a flusher",
            libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0),
        )?;
        check(
            "lock memory for swap",
            libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE),
        )?;
    }
    std::fs::write("/proc/self/oom_score_adj", "-1000")
        .map_err(UblkError::system("be spared when memory is short"))
}

/// Keeps the memory of a swap device's store, and that of this process, from being swapped out
/// until this process ends: for a holder, which outlives the daemons. While no daemon lives, none
/// locks the pages of `memory`, and the system could write them to the very device that they serve,
/// where they would wait for the next daemon, which waits for them. It maps all of `memory` for
/// this, which takes page tables of 1/512 of its length.
///
/// # Errors
/// If the process is not root's, or there is too little memory.
pub fn hold_for_swap(memory: &File) -> Result<(), UblkError> {
    let metadata = memory
        .metadata()
        .map_err(UblkError::system("look at the memory of a swap device"))?;
    let len = metadata.len() as usize;
    // SAFETY: the first call takes numbers; the second maps the file wherever the system likes, and
    // nothing reads it there; the third takes the range of that mapping.
    unsafe {
        // The holder uses little of what it has mapped, so only what it touches is locked.
        check(
            "lock the memory of a holder",
            libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT),
        )?;
        let base = libc::mmap(
            ptr::null_mut(),
            len,
            libc::PROT_READ,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            memory.as_raw_fd(),
            0,
        );
        if base == libc::MAP_FAILED {
            let source = io::Error::last_os_error();
            return Err(UblkError::system("map the memory of a swap device")(source));
        }
        check("lock the memory of a swap device", libc::mlock(base, len))
    }
}

/// The error number of a system call that returned anything but 0.
fn check(what: &'static str, done: libc::c_int) -> Result<(), UblkError> {
    match done {
        0 => Ok(()),
        _ => Err(UblkError::system(what)(io::Error::last_os_error())),
    }
}

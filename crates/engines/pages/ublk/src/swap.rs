//! A process that serves swap. Has `unsafe`: locking memory, and a word to the system.

use std::io;

use crate::UblkError;

/// Makes this process fit to serve swap: all its memory, the store's arena included, is taken now
/// and stays; memory that the system takes for its writes is not got by swapping; and when memory
/// is short others are ended first. Call it after the store was made and before a device is made or
/// taken over, whose threads take the second of these over from the one that makes them. Do not
/// compact such a store: what is given back would have to be taken again.
///
/// # Errors
/// Without root, or when the memory is not there.
pub fn prepare_for_swap() -> Result<(), UblkError> {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    let check = |what, done: libc::c_int| match done {
        0 => Ok(()),
        _ => Err(UblkError::system(what)(io::Error::last_os_error())),
    };
    // SAFETY: the calls take numbers.
    unsafe {
        check(
            "lock memory for swap",
            libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE),
        )?;
        check(
            "become a flusher",
            libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0),
        )?;
    }
    std::fs::write("/proc/self/oom_score_adj", "-1000")
        .map_err(UblkError::system("be spared when memory is short"))
}

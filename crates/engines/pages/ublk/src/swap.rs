//! Makes the process fit to serve swap. Has `unsafe`: system calls that lock memory and mark the
//! process.

use std::io;

use crate::UblkError;

/// Makes this process fit to serve swap: all its memory, the store's arena included, is allocated
/// and locked now; memory that the system allocates for its writes is not reclaimed by swapping;
/// and other processes are killed first when memory is short. Call it after the store was made and
/// before a device is made or taken over, because the threads of a device inherit the second of
/// these. Do not compact such a store: what is given back would have to be allocated again.
///
/// # Errors
/// If the process is not root's, or there is too little memory.
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

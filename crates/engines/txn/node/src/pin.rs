//! Binds a thread to a core. Unsafe: one system call.

use dyno_txn_api::Result;

use crate::error::bad_argument;

/// Binds the calling thread to a core, by the number that the system gives it.
pub(crate) fn pin(core: usize) -> Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(bad_argument(format!(
            "core {core}: the system has no core of this number"
        )));
    }
    // SAFETY: a set of zeros is an empty set; `CPU_SET` writes one bit of it, whose number was
    // checked; the call reads as many bytes as it is told.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    match done {
        0 => Ok(()),
        _ => {
            let error = std::io::Error::last_os_error();
            Err(bad_argument(format!(
                "core {core}: a thread cannot be bound to it: {error}"
            )))
        }
    }
}

//! Processes that outlive their parent and inherit nothing from it. Has `unsafe`: system calls
//! between fork and exec, and for signals.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has `command` start in a session of its own, at the root of the file system, with no file open
/// but its standard ones: otherwise a lock, a pipe or a directory of the caller would stay in use
/// until it ends.
pub fn detached(command: &mut Command) -> &mut Command {
    const FIRST_BEYOND_STANDARD: libc::c_uint = 3;
    let leave = || {
        // SAFETY: system calls alone, which may be made here. The descriptors are closed by exec,
        // so that the one by which the standard library hears of a failure works until then.
        unsafe {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
            // Before Linux 5.11 the call does not exist, and what is inherited stays open.
            libc::syscall(
                libc::SYS_close_range,
                FIRST_BEYOND_STANDARD,
                libc::c_uint::MAX,
                flags,
            );
        }
        Ok(())
    };
    // SAFETY: see above; nothing is allocated.
    unsafe { command.current_dir("/").pre_exec(leave) }
}

/// From now on the end of the terminal ends neither this process nor those that it starts.
pub fn ignore_hang_up() {
    // SAFETY: no handler of ours runs.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

//! Signals to the checker's own child processes. Uses unsafe code: `kill` has no safe form in
//! `libc`.

use std::io;
use std::process::Child;

/// Stops a child where it stands (SIGSTOP).
pub fn stop_process(child: &Child) -> io::Result<()> {
    send(child, libc::SIGSTOP)
}

/// Lets a stopped child go on (SIGCONT).
pub fn resume(child: &Child) -> io::Result<()> {
    send(child, libc::SIGCONT)
}

/// Asks a child to end (SIGTERM).
pub fn terminate(child: &Child) -> io::Result<()> {
    send(child, libc::SIGTERM)
}

fn send(child: &Child, signal: libc::c_int) -> io::Result<()> {
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    // SAFETY: kill reads no memory of ours. The number is that of a child which was not waited for,
    // since its `Child` is borrowed, so the system cannot have given it to another process.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

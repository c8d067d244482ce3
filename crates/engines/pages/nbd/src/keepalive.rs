//! Asking the system whether a silent client is still there. Has `unsafe`: an option of a socket.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Has the system ask a client of which nothing was heard for a while; one that does not answer is
/// gone, and the next read fails.
pub fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    let set = |level, option, value: libc::c_int| {
        // SAFETY: the descriptor is open, and the value lives through the call with its true size.
        let done = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    // After a minute of silence, every ten seconds, six times.
    set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 60)?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10)?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6)
}

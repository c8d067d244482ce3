//! Finds out whether a client is still there when nothing comes from it. Has `unsafe`: the options
//! of a socket.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Has the system probe a client that was silent for a while, and give up one that does not
/// acknowledge a reply within `write_wait`. In both cases the next read or write fails.
pub fn keep_alive(socket: &TcpStream, write_wait: Duration) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    // After a minute of silence, six probes, ten seconds apart.
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 60)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6)?;
    // No probe is sent while a reply waits for its acknowledgement. Without this limit the system
    // would repeat that reply for a quarter of an hour.
    let wait = write_wait.as_nanos().div_ceil(1_000_000);
    let wait = libc::c_int::try_from(wait).unwrap_or(libc::c_int::MAX);
    set(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, wait)
}

fn set(socket: &TcpStream, level: i32, option: i32, value: libc::c_int) -> io::Result<()> {
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
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn get(socket: &TcpStream, option: i32) -> libc::c_int {
        let mut value: libc::c_int = -1;
        let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the descriptor is open, and value and size live through the call.
        let done = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                option,
                (&raw mut value).cast(),
                &raw mut bytes,
            )
        };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
        value
    }

    /// Probes are sent to a silent client only while nothing waits for its acknowledgement.
    #[test]
    fn a_client_that_vanishes_with_a_reply_on_its_way_is_given_up_within_the_write_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).expect("the listener");
        for (wait, milliseconds) in [
            (Duration::from_secs(120), 120_000),
            (Duration::from_nanos(1), 1),
            (Duration::MAX, i32::MAX),
        ] {
            keep_alive(&client, wait).expect("options of TCP");
            assert_eq!(get(&client, libc::TCP_USER_TIMEOUT), milliseconds);
            assert_eq!(get(&client, libc::TCP_KEEPIDLE), 60);
        }
    }
}

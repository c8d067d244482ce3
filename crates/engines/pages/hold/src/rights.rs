//! Messages on a Unix socket, with a descriptor (SCM_RIGHTS). Has `unsafe`: `sendmsg`, `recvmsg`
//! and `getsockopt`, and descriptors that come out of them.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::HoldError;
use crate::message::{HEAD_BYTES, Head};

/// Room for one descriptor's control message; 64-bit words align it.
const CONTROL_WORDS: usize = 4;

/// A message as it came.
#[derive(Debug)]
pub struct Arrived {
    /// Its head.
    pub head: Head,
    /// Its name; only UTF-8 is a name.
    pub name: String,
    /// Its note.
    pub note: Vec<u8>,
    /// The descriptor that came with it.
    pub file: Option<OwnedFd>,
}

/// Sends a message, with a descriptor if there is one.
pub fn send(socket: &UnixStream, message: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut part = libc::iovec {
        iov_base: message.as_ptr().cast_mut().cast(),
        iov_len: message.len(),
    };
    let mut control = [0u64; CONTROL_WORDS];
    // SAFETY: all zeros is a value of the structure.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_iov = &raw mut part;
    head.msg_iovlen = 1;
    if let Some(file) = file {
        head.msg_control = control.as_mut_ptr().cast();
        // SAFETY: arithmetic on lengths, and writes within `control`, which has room for one
        // descriptor.
        unsafe {
            head.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
            let part = libc::CMSG_FIRSTHDR(&raw const head);
            (*part).cmsg_level = libc::SOL_SOCKET;
            (*part).cmsg_type = libc::SCM_RIGHTS;
            (*part).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(part)
                .cast::<RawFd>()
                .write_unaligned(file.as_raw_fd());
        }
    }
    // SAFETY: the structures and what they point at live through the call.
    let sent = uninterrupted(|| unsafe {
        libc::sendmsg(socket.as_raw_fd(), &raw const head, libc::MSG_NOSIGNAL)
    })?;
    // The descriptor went with the first byte.
    let mut socket = socket;
    socket.write_all(&message[sent..])
}

/// Calls again when a signal came before anything was moved. On sockets with a time limit the
/// system does not do that by itself, and a process that uses io_uring is interrupted by that too.
fn uninterrupted(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        if let Ok(moved) = usize::try_from(call()) {
            return Ok(moved);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Waits for a message.
pub fn receive(socket: &UnixStream) -> Result<Arrived, HoldError> {
    let failed = |error: io::Error| HoldError::Message(error.to_string());
    let mut bytes = [0; HEAD_BYTES];
    let (got, file) = receive_some(socket, &mut bytes).map_err(failed)?;
    let mut socket = socket;
    socket.read_exact(&mut bytes[got..]).map_err(failed)?;
    let head = Head::parse(&bytes)?;
    let mut name = vec![0; head.name_bytes];
    socket.read_exact(&mut name).map_err(failed)?;
    let mut note = vec![0; head.note_bytes];
    socket.read_exact(&mut note).map_err(failed)?;
    let name = String::from_utf8(name)
        .map_err(|_| HoldError::Message("the name is not UTF-8".to_owned()))?;
    Ok(Arrived {
        head,
        name,
        note,
        file,
    })
}

fn receive_some(socket: &UnixStream, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut part = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let mut control = [0u64; CONTROL_WORDS];
    // SAFETY: all zeros is a value of the structure.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_iov = &raw mut part;
    head.msg_iovlen = 1;
    head.msg_control = control.as_mut_ptr().cast();
    head.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the structures and what they point at live through the call.
    let got = uninterrupted(|| unsafe {
        libc::recvmsg(socket.as_raw_fd(), &raw mut head, libc::MSG_CMSG_CLOEXEC)
    })?;
    let mut files = Vec::new();
    // SAFETY: the system has written whole control messages into `control` and their lengths into
    // the heads; each descriptor in them is new, and owned from here on.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(&raw const head);
        while !at.is_null() {
            if (*at).cmsg_level == libc::SOL_SOCKET && (*at).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(at).cast::<RawFd>();
                let bytes = (*at).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for number in 0..bytes / size_of::<RawFd>() {
                    files.push(OwnedFd::from_raw_fd(data.add(number).read_unaligned()));
                }
            }
            at = libc::CMSG_NXTHDR(&raw const head, at);
        }
    }
    // One is what a message has; others are closed.
    files.truncate(1);
    match got {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok((got, files.pop())),
    }
}

/// The user of the process at the other end.
pub fn peer_user(socket: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the structure is there to be filled, with its true size.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut bytes,
        )
    };
    match done {
        0 => Ok(peer.uid),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The user of this process.
pub fn own_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::thread::JoinHandleExt;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::message::{Verb, message};

    extern "C" fn nothing(_signal: libc::c_int) {}

    #[test]
    fn a_signal_does_not_end_the_wait_for_a_message() {
        let handler: extern "C" fn(libc::c_int) = nothing;
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
        let (here, there) = UnixStream::pair().expect("a pair");
        here.set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a limit");
        let waiting = thread::spawn(move || receive(&here));
        let thread = waiting.as_pthread_t();
        for _ in 0..2000 {
            if waiting.is_finished() {
                break;
            }
            // SAFETY: the thread is not joined yet.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            thread::yield_now();
        }
        let question = message(Verb::List, "", &[]).expect("short");
        // Who waited in vain has closed its end.
        let _sent = send(&there, &question, None);
        let arrived = waiting.join().expect("no panic").expect("a message");
        assert_eq!(arrived.head.verb, Verb::List);
    }
}

//! Messages on a Unix socket, with a descriptor (SCM_RIGHTS). Only its test has `unsafe`: it sends
//! signals to a thread.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::retry_on_intr;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::geteuid;

use crate::HoldError;
use crate::message::{HEAD_BYTES, Head};

/// A message as it came, with the descriptor that came along.
#[derive(Debug)]
pub struct Arrived {
    pub head: Head,
    /// The name; a name that is not UTF-8 is refused.
    pub name: String,
    pub note: Vec<u8>,
    pub file: Option<OwnedFd>,
}

/// Sends a message, with a descriptor if there is one.
pub fn send(socket: &UnixStream, message: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = file.as_slice();
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    let part = [IoSlice::new(message)];
    // Signals interrupt calls on a socket with a time limit even if they are to be restarted, and
    // so does io_uring in a process that uses it.
    let sent = retry_on_intr(|| sendmsg(socket, &part, &mut control, SendFlags::NOSIGNAL))?;
    // The descriptor went with the first byte, so the rest goes without it.
    let mut socket = socket;
    socket.write_all(&message[sent..])
}

/// Waits for a whole message.
pub fn receive(socket: &UnixStream) -> Result<Arrived, HoldError> {
    let failed = |error: io::Error| HoldError::Message(error.to_string());
    let mut bytes = [0; HEAD_BYTES];
    let (got, file) = receive_part(socket, &mut bytes).map_err(failed)?;
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

/// Receives what is there, at most as many bytes as `into` has, and the descriptor that came with
/// it. Waits for the first byte for as long as the socket's time limit says.
///
/// # Errors
/// The system's reason; `UnexpectedEof` when the other end has closed.
pub fn receive_part(socket: &UnixStream, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    // The kernel closes descriptors that do not fit, so a peer cannot fill our table with them.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut part = [IoSliceMut::new(into)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = retry_on_intr(|| recvmsg(socket, &mut part, &mut control, flags))?.bytes;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    // A message has one descriptor; any further one is closed when it is dropped here.
    let file = files.flatten().next();
    match got {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok((got, file)),
    }
}

/// The user of the process at the other end, as the system knows it.
pub fn peer_user(socket: &UnixStream) -> io::Result<u32> {
    Ok(socket_peercred(socket)?.uid.as_raw())
}

/// The effective user of this process.
pub fn own_user() -> u32 {
    geteuid().as_raw()
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

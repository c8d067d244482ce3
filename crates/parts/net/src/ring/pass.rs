//! A descriptor from one process to another over a Unix socket. Has `unsafe`: sendmsg and recvmsg
//! with control messages (unix(7), SCM_RIGHTS), and a connect that does not wait, which the
//! standard library does not offer.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;

use super::owned;

/// Room for the control message of this many descriptors; more than one is not asked for, and what
/// comes beyond the room is closed by the kernel.
const MOST_FDS: usize = 4;

/// Aligned as control messages must be.
#[repr(align(8))]
struct Room([u8; 64]);

/// Connects to an abstract Unix socket without waiting: a server with a full backlog is
/// [`io::ErrorKind::WouldBlock`]. The socket does not block afterwards either.
pub fn connect_abstract(name: &str) -> io::Result<UnixStream> {
    // SAFETY: integers only.
    let socket = owned(unsafe {
        libc::socket(
            libc::AF_UNIX,
            libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
            0,
        )
    })?;
    // SAFETY: a sockaddr_un of zeros is valid.
    let mut place: libc::sockaddr_un = unsafe { mem::zeroed() };
    place.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The byte 0 before the name is what makes it abstract.
    let path = place
        .sun_path
        .get_mut(1..=name.len())
        .ok_or(io::ErrorKind::InvalidInput)?;
    for (byte, of_name) in path.iter_mut().zip(name.bytes()) {
        *byte = of_name as libc::c_char;
    }
    let bytes = mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    // SAFETY: the address outlives the call, and `bytes` lie within it.
    let connected = unsafe {
        libc::connect(
            socket.as_raw_fd(),
            (&raw const place).cast(),
            bytes as libc::socklen_t,
        )
    };
    match connected {
        0 => Ok(UnixStream::from(socket)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends `bytes` with the descriptor attached to the first of them. The answer is how many bytes
/// went.
pub fn send_with_fd(socket: &UnixStream, bytes: &[u8], fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut room = Room([0; 64]);
    let mut slice = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: a msghdr of zeros is a valid empty one.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = room.0.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE and CMSG_LEN compute lengths; CMSG_FIRSTHDR points into `room`, which is
    // long and aligned enough for one descriptor and outlives the call; sendmsg only reads the
    // rest.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(mem::size_of::<libc::c_int>() as u32) as _;
        let control = libc::CMSG_FIRSTHDR(&raw const message);
        (*control).cmsg_level = libc::SOL_SOCKET;
        (*control).cmsg_type = libc::SCM_RIGHTS;
        (*control).cmsg_len = libc::CMSG_LEN(mem::size_of::<libc::c_int>() as u32) as _;
        ptr::write_unaligned(libc::CMSG_DATA(control).cast(), fd.as_raw_fd());
        libc::sendmsg(
            socket.as_raw_fd(),
            &raw const message,
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        )
    };
    match sent {
        ..0 => Err(io::Error::last_os_error()),
        sent => Ok(sent as usize),
    }
}

/// Receives bytes, and the descriptors that came with them.
pub fn receive_with_fds(
    socket: &UnixStream,
    into: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut room = Room([0; 64]);
    let mut slice = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    // SAFETY: a msghdr of zeros is a valid empty one.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = room.0.as_mut_ptr().cast();
    // SAFETY: the lengths below are those of `into` and of a part of `room`; both outlive the call.
    let received = unsafe {
        message.msg_controllen =
            libc::CMSG_SPACE((MOST_FDS * mem::size_of::<libc::c_int>()) as u32) as _;
        libc::recvmsg(
            socket.as_raw_fd(),
            &raw mut message,
            libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT,
        )
    };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has filled `message`, whose control part lies in `room`; the CMSG
    // functions walk it within msg_controllen. Each descriptor in it is new and ours to own.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(&raw const message);
        while !control.is_null() {
            if (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_RIGHTS
            {
                let bytes = (*control).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let first = libc::CMSG_DATA(control).cast::<libc::c_int>();
                for at in 0..bytes / mem::size_of::<libc::c_int>() {
                    fds.push(OwnedFd::from_raw_fd(ptr::read_unaligned(first.add(at))));
                }
            }
            control = libc::CMSG_NXTHDR(&raw const message, control);
        }
    }
    Ok(received as usize)
}

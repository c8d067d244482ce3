//! The handshake: one message from the VMM, with the descriptor of its memory's faults. Nothing is
//! answered, because Firecracker reads nothing.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dyno_pages_hold::receive_part;

use crate::PagerError;
use crate::layout::{Layout, MOST_MESSAGE_BYTES};

/// Waits until the whole message has come, for `wait` at most.
///
/// # Errors
/// Those of [`Layout::parse`]; [`PagerError::Slow`], [`PagerError::TooLong`],
/// [`PagerError::Ended`], [`PagerError::Nothing`], [`PagerError::NoDescriptor`].
pub fn receive(
    socket: &UnixStream,
    snapshot_bytes: u64,
    wait: Duration,
) -> Result<(Layout, OwnedFd), PagerError> {
    let until = Instant::now() + wait;
    let mut message = Vec::new();
    let mut part = vec![0; MOST_MESSAGE_BYTES];
    let mut descriptor = None;
    loop {
        // The limit is for the whole message, so that a sender of single bytes is done with in the
        // same time as one that sends nothing.
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(PagerError::Slow(wait));
        }
        socket
            .set_read_timeout(Some(left))
            .map_err(PagerError::system("set a time limit"))?;
        let (bytes, came) = match receive_part(socket, &mut part) {
            Ok(received) => received,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => return Err(PagerError::Slow(wait)),
                ErrorKind::UnexpectedEof if message.is_empty() => return Err(PagerError::Nothing),
                ErrorKind::UnexpectedEof => {
                    return Err(PagerError::Ended {
                        bytes: message.len(),
                    });
                }
                _ => return Err(PagerError::system("receive the message")(error)),
            },
        };
        message.extend_from_slice(&part[..bytes]);
        descriptor = descriptor.or(came);
        if message.len() > MOST_MESSAGE_BYTES {
            return Err(PagerError::TooLong {
                most: MOST_MESSAGE_BYTES,
            });
        }
        if let Some(layout) = Layout::parse(&message, snapshot_bytes)? {
            let descriptor = descriptor.ok_or(PagerError::NoDescriptor)?;
            return Ok((layout, descriptor));
        }
    }
}

//! The sending side of a polled connection. Frames go straight into the ring or the socket's
//! buffer, and what does not fit waits in a bounded backlog.

use std::time::Duration;

use super::clock::{CoarseInstant, coarse_now};
use super::link::{Link, LinkError};
use crate::frame::header;
use crate::{FrameError, HEADER_BYTES, Head};

/// Written bytes are shown to the peer of a ring after this many at the latest, so that both ends
/// work at once.
const PUBLISH_BYTES: usize = 8 << 10;
/// A backlog that grew beyond this is given back once it is empty.
const KEEP_BYTES: usize = 1 << 20;

/// Why a frame was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer reads too slowly and the backlog is full. Nothing was sent; flush, and try again
    /// later.
    #[error("the peer does not read: {bytes} bytes wait for it, at most {most_bytes} may")]
    Full {
        /// Bytes that wait for the peer.
        bytes: usize,
        /// The limit for them.
        most_bytes: usize,
    },
    /// The frame cannot be made, because its body is too long.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The connection has ended, and nothing was sent.
    #[error("the connection has ended")]
    Ended,
}

/// Where frames for one peer go.
#[derive(Debug)]
pub struct Outbound {
    pub(super) link: Link,
    /// Bytes that wait, from `sent` on.
    backlog: Vec<u8>,
    sent: usize,
    most_bytes: usize,
    unpublished: usize,
    /// Since when nothing moves although something waits.
    stalled: Option<CoarseInstant>,
    pub(super) failed: Option<LinkError>,
}

impl Outbound {
    pub(super) fn new(link: Link, most_bytes: usize) -> Outbound {
        Outbound {
            link,
            backlog: Vec::new(),
            sent: 0,
            most_bytes,
            unpublished: 0,
            stalled: None,
            failed: None,
        }
    }

    /// Sends a frame whose body is these parts. It goes out with the next flush at the latest,
    /// together with others. A frame is accepted while less than the limit waits, so one frame may
    /// exceed it.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), SendError> {
        if self.is_full() {
            return Err(SendError::Full {
                bytes: self.waiting_bytes(),
                most_bytes: self.most_bytes,
            });
        }
        if self.failed.is_some() {
            return Err(SendError::Ended);
        }
        let header = header(head, parts)?;
        let bytes = HEADER_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
        // A frame may go straight into the ring only if nothing waits before it, or it would
        // overtake.
        if self.backlog.is_empty()
            && let Link::Ring(ring) = &mut self.link
        {
            match ring.room(bytes) {
                Ok(room) if room >= bytes => {
                    self.put_in_ring(&header, parts, bytes);
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) => {
                    self.failed = Some(error.into());
                    return Err(SendError::Ended);
                }
            }
        }
        self.backlog.extend_from_slice(&header);
        for part in parts {
            self.backlog.extend_from_slice(part);
        }
        Ok(())
    }

    /// Accepts no more frames while this many bytes wait.
    pub(super) fn set_most_bytes(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
    }

    /// Bytes that wait in this process.
    pub fn waiting_bytes(&self) -> usize {
        self.backlog.len() - self.sent
    }

    /// Memory of the backlog, which stays after what it held is sent.
    pub(super) fn held_bytes(&self) -> usize {
        self.backlog.capacity()
    }

    /// Gives the memory of an empty backlog back.
    pub(super) fn shrink(&mut self) {
        if self.backlog.is_empty() {
            self.backlog = Vec::new();
        }
    }

    /// Whether no more frames are accepted for now.
    pub fn is_full(&self) -> bool {
        self.waiting_bytes() >= self.most_bytes
    }

    /// Whether a flush has something to do.
    pub fn is_pending(&self) -> bool {
        self.unpublished > 0 || !self.backlog.is_empty() || self.link.holds_back()
    }

    /// Whether something waits for the peer to make room.
    pub(super) fn is_blocked(&self) -> bool {
        !self.backlog.is_empty() || self.link.holds_back()
    }

    /// Writes a whole frame into the ring; the caller has checked that there is room.
    fn put_in_ring(&mut self, header: &[u8], parts: &[&[u8]], bytes: usize) {
        let mut write = || -> Result<(), LinkError> {
            self.link.write(header)?;
            for part in parts {
                self.link.write(part)?;
            }
            self.unpublished += bytes;
            if self.unpublished >= PUBLISH_BYTES {
                self.unpublished = 0;
                self.link.flush()?;
            }
            Ok(())
        };
        self.failed = write().err();
    }

    /// Hands on as much as possible now, and returns whether that was all; `None` if nothing has
    /// moved for longer than `most_stall`.
    pub(super) fn flush(&mut self, most_stall: Duration) -> Result<Option<bool>, LinkError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut moved = false;
        while self.sent < self.backlog.len() {
            let count = self.link.write(&self.backlog[self.sent..])?;
            if count == 0 {
                break;
            }
            moved = true;
            self.sent += count;
        }
        self.unpublished = 0;
        self.link.flush()?;
        if self.sent == self.backlog.len() {
            self.sent = 0;
            self.backlog.clear();
            self.backlog.shrink_to(KEEP_BYTES);
        // Bytes are moved to the front only once half are sent, so each is moved once on average.
        } else if self.sent > self.backlog.len() / 2 {
            self.backlog.drain(..self.sent);
            self.sent = 0;
        }
        if !self.is_blocked() {
            self.stalled = None;
            return Ok(Some(true));
        }
        let now = coarse_now();
        let since = match self.stalled {
            Some(since) if !moved => since,
            _ => *self.stalled.insert(now),
        };
        Ok((now.since(since) <= most_stall).then_some(false))
    }
}
